package tfb;

import jakarta.persistence.CascadeType;
import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;

/** An order with its items. Every change to the items updates the total. */
@Entity
@Table(name = "orders")
public class Order {

    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    private Long id;

    @ManyToOne(fetch = FetchType.LAZY, optional = false)
    @JoinColumn(name = "customer_id", updatable = false)
    private Customer customer;

    private String card;

    private BigDecimal total = BigDecimal.ZERO;

    @OneToMany(mappedBy = "order", cascade = CascadeType.ALL, orphanRemoval = true)
    @OrderBy("itemId")
    private List<OrderItem> items = new ArrayList<>();

    protected Order() {
    }

    Order(Customer customer, String card) {
        this.customer = customer;
        this.card = card;
    }

    public Long getId() {
        return id;
    }

    public Customer getCustomer() {
        return customer;
    }

    public String getCard() {
        return card;
    }

    public void setCard(String card) {
        this.card = card;
    }

    public BigDecimal getTotal() {
        return total;
    }

    public List<OrderItem> getItems() {
        return items;
    }

    boolean contains(int itemId) {
        return items.stream().anyMatch(line -> line.getItemId() == itemId);
    }

    void add(Item item, int quantity) {
        items.add(new OrderItem(this, item, quantity));
        computeTotal();
    }

    /** Removes an item, and returns whether the order contained it. */
    boolean remove(int itemId) {
        boolean removed = items.removeIf(line -> line.getItemId() == itemId);
        computeTotal();
        return removed;
    }

    private void computeTotal() {
        total = items.stream().map(OrderItem::cost).reduce(BigDecimal.ZERO.setScale(2), BigDecimal::add);
    }
}
