package tfb;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import org.hibernate.annotations.Immutable;

/** A row of the {@code customer} table. */
@Entity
@Immutable
public class Customer {

    @Id
    private Integer id;

    protected Customer() {
    }

    public Integer getId() {
        return id;
    }
}
