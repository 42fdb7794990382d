package tfb;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/** Repository for the {@code fortune} table. */
public final class FortuneRepository {

    private final DataSource database;

    public FortuneRepository(DataSource database) {
        this.database = database;
    }

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
