package tfb;

import jakarta.annotation.Resource;
import jakarta.enterprise.context.ApplicationScoped;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/** Repository for the {@code fortune} table. */
@ApplicationScoped
public class FortuneRepository {

    @Resource(lookup = "java:jboss/datasources/tfb")
    private DataSource database;

    /** Returns all rows in a modifiable list. */
    public List<Fortune> all() throws SQLException {
        try (Connection connection = database.getConnection();
                PreparedStatement statement = connection.prepareStatement("SELECT id, message FROM fortune");
                ResultSet rows = statement.executeQuery()) {
            List<Fortune> fortunes = new ArrayList<>();
            while (rows.next()) {
                fortunes.add(new Fortune(rows.getInt(1), rows.getString(2)));
            }
            return fortunes;
        }
    }
}
