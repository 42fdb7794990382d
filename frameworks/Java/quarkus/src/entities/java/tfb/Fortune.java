package tfb;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;

/** A row of the {@code fortune} table, or the additional fortune that is never stored. */
@Entity
@Table(name = "fortune")
public class Fortune {

    @Id
    private int id;

    private String message;

    public Fortune() {}

    public Fortune(int id, String message) {
        this.id = id;
        this.message = message;
    }

    public int id() {
        return id;
    }

    public String message() {
        return message;
    }
}
