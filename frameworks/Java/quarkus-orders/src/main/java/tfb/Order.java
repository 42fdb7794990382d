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
import jakarta.persistence.Table;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** A row of the {@code orders} table with its items. Every change to the items updates the total. */
@Entity
@Table(name = "orders")
public class Order {

    private static final BigDecimal NOTHING = new BigDecimal("0.00");

    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    private Long id;

    @ManyToOne(fetch = FetchType.LAZY, optional = false)
    @JoinColumn(name = "customer_id")
    private Customer customer;

    private String card;

    private BigDecimal total = NOTHING;

    @OneToMany(mappedBy = "order", cascade = CascadeType.ALL, orphanRemoval = true)
    private List<OrderItem> items = new ArrayList<>();

    protected Order() {}

    public Order(Customer customer, String card) {
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

    /** Adds {@code quantity} units of the item at the current price. */
    void add(Item item, int quantity) {
        items.add(new OrderItem(this, item, quantity));
        sumUp();
    }

    /**
     * Adds an item like {@link #add}. Fails with 400 if {@code item} is null, and with 409 if the order already
     * contains it.
     */
    void addOnce(Item item, int itemId, int quantity) {
        if (item == null) {
            throw Problems.unknownItem(itemId);
        }
        if (find(itemId).isPresent()) {
            throw Problems.alreadyInOrder(itemId);
        }
        add(item, quantity);
    }

    /** Removes the item, or fails with 404 if the order does not contain it. */
    void remove(int itemId) {
        items.remove(find(itemId).orElseThrow(() -> Problems.notInOrder(itemId)));
        sumUp();
    }

    private Optional<OrderItem> find(int itemId) {
        return items.stream().filter(item -> item.getItemId() == itemId).findFirst();
    }

    private void sumUp() {
        total = items.stream().map(OrderItem::amount).reduce(NOTHING, BigDecimal::add);
    }
}
