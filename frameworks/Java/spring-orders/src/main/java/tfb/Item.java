package tfb;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import java.math.BigDecimal;
import org.hibernate.annotations.Immutable;

/** An item with the current price. */
@Entity
@Immutable
public class Item {

    @Id
    private Integer id;

    private BigDecimal price;

    protected Item() {
    }

    public Integer getId() {
        return id;
    }

    public BigDecimal getPrice() {
        return price;
    }
}
