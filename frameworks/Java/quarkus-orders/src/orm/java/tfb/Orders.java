package tfb;

import jakarta.enterprise.context.ApplicationScoped;
import jakarta.persistence.LockModeType;
import jakarta.transaction.Transactional;
import java.util.List;
import org.hibernate.Session;

/**
 * The operations on orders, implemented with Hibernate ORM. Changes lock the order's row before they read the items.
 */
@ApplicationScoped
class Orders {

    private final Session session;

    Orders(Session session) {
        this.session = session;
    }

    @Transactional
    OrderView create(NewOrder wanted) {
        Customer customer = session.find(Customer.class, wanted.customerId());
        Order order = wanted.toOrder(customer, items(wanted.itemIds()));
        session.persist(order);
        return OrderView.of(order);
    }

    List<OrderSummary> newest(int limit) {
        return session.createSelectionQuery(Queries.NEWEST, OrderSummary.class).setMaxResults(limit).getResultList();
    }

    OrderView read(long id) {
        Order order = session.createSelectionQuery(Queries.ORDER, Order.class).setParameter("id", id).getSingleResultOrNull();
        if (order == null) {
            throw Problems.unknownOrder();
        }
        return OrderView.of(order);
    }

    @Transactional
    OrderView changeCard(long id, String card) {
        Order order = locked(id);
        order.setCard(card);
        return OrderView.of(order);
    }

    @Transactional
    void delete(long id) {
        if (session.createMutationQuery(Queries.DELETE).setParameter("id", id).executeUpdate() == 0) {
            throw Problems.unknownOrder();
        }
    }

    OrderItemView readItem(long id, int itemId) {
        OrderItemView item = session.createSelectionQuery(Queries.ORDER_ITEM, OrderItemView.class)
                .setParameter("id", id)
                .setParameter("itemId", itemId)
                .getSingleResultOrNull();
        if (item == null) {
            throw Problems.notInOrder(itemId);
        }
        return item;
    }

    @Transactional
    OrderView addItem(long id, ItemId itemId, int quantity) {
        Order order = locked(id);
        Item item = session.find(Item.class, itemId.possible().value());
        order.addOnce(item, itemId.value(), quantity);
        return OrderView.of(order);
    }

    @Transactional
    void deleteItem(long id, int itemId) {
        locked(id).remove(itemId);
    }

    @Transactional
    int load(DataLoad load) {
        load.toOrders(id -> session.getReference(Customer.class, id), items(load.ids())).forEach(session::persist);
        return load.orders();
    }

    private List<Item> items(List<Integer> ids) {
        return session.createSelectionQuery(Queries.ITEMS, Item.class).setParameter("ids", ids).getResultList();
    }

    private Order locked(long id) {
        Order order = session.find(Order.class, id, LockModeType.PESSIMISTIC_WRITE);
        if (order == null) {
            throw Problems.unknownOrder();
        }
        return order;
    }
}
