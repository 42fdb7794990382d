package tfb;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.math.BigDecimal;

/** A row of the {@code item} table, with the current price. */
@Entity
@Table(name = "item")
public class Item {

    @Id
    private Integer id;

    private String name;

    private BigDecimal price;

    public Integer getId() {
        return id;
    }

    public String getName() {
        return name;
    }

    public BigDecimal getPrice() {
        return price;
    }
}
