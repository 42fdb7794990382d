package tfb;

import java.util.List;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.RowMapper;
import org.springframework.stereotype.Repository;

/** Repository for the {@code fortune} table. */
@Repository
class FortuneRepository {

    private static final RowMapper<Fortune> FORTUNE = (row, number) -> new Fortune(row.getInt(1), row.getString(2));

    private final JdbcTemplate jdbc;

    FortuneRepository(JdbcTemplate jdbc) {
        this.jdbc = jdbc;
    }

    List<Fortune> all() {
        return jdbc.query("SELECT id, message FROM fortune", FORTUNE);
    }
}
