package tfb;

import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.Id;
import jakarta.persistence.IdClass;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.Table;
import java.math.BigDecimal;

/** A row of the {@code order_item} table. The price is the unit price at the time of the order. */
@Entity
@Table(name = "order_item")
@IdClass(OrderItemId.class)
public class OrderItem {

    @Id
    @ManyToOne(fetch = FetchType.LAZY, optional = false)
    @JoinColumn(name = "order_id")
    private Order order;

    @Id
    @Column(name = "item_id")
    private int itemId;

    private int quantity;

    private BigDecimal price;

    protected OrderItem() {}

    OrderItem(Order order, Item item, int quantity) {
        this.order = order;
        this.itemId = item.getId();
        this.quantity = quantity;
        this.price = item.getPrice();
    }

    public int getItemId() {
        return itemId;
    }

    public int getQuantity() {
        return quantity;
    }

    public BigDecimal getPrice() {
        return price;
    }

    BigDecimal amount() {
        return price.multiply(BigDecimal.valueOf(quantity));
    }
}
