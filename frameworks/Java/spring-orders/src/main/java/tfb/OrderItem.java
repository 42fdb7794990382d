package tfb;

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.Id;
import jakarta.persistence.IdClass;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.Table;
import java.io.Serializable;
import java.math.BigDecimal;

/** An ordered item, with its unit price at the time of the order. */
@Entity
@Table(name = "order_item")
@IdClass(OrderItem.Key.class)
public class OrderItem {

    @Id
    @ManyToOne(fetch = FetchType.LAZY)
    @JoinColumn(name = "order_id")
    private Order order;

    @Id
    private Integer itemId;

    private int quantity;

    private BigDecimal price;

    protected OrderItem() {
    }

    OrderItem(Order order, Item item, int quantity) {
        this.order = order;
        this.itemId = item.getId();
        this.quantity = quantity;
        this.price = item.getPrice();
    }

    public Integer getItemId() {
        return itemId;
    }

    public int getQuantity() {
        return quantity;
    }

    public BigDecimal getPrice() {
        return price;
    }

    BigDecimal cost() {
        return price.multiply(BigDecimal.valueOf(quantity));
    }

    record Key(Long order, Integer itemId) implements Serializable {
    }
}
