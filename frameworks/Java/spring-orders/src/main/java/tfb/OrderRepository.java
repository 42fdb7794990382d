package tfb;

import jakarta.persistence.LockModeType;
import java.util.List;
import java.util.Optional;
import org.springframework.data.domain.Limit;
import org.springframework.data.jpa.repository.EntityGraph;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Lock;
import org.springframework.data.jpa.repository.Modifying;
import org.springframework.data.jpa.repository.Query;

interface OrderRepository extends JpaRepository<Order, Long> {

    List<OrderSummary> findAllByOrderByIdDesc(Limit limit);

    /** Reads an order and its items in a single statement, so both are from the same snapshot. */
    @EntityGraph(attributePaths = "items")
    Optional<Order> findWithItemsById(long id);

    /** Locks the order's row until the transaction ends. The items are read lazily afterwards. */
    @Lock(LockModeType.PESSIMISTIC_WRITE)
    Optional<Order> findLockedById(long id);

    /**
     * Deletes an order and, through the foreign key's ON DELETE CASCADE, its items. Returns the number of deleted
     * orders.
     */
    @Modifying
    @Query("delete from Order o where o.id = :id")
    int deleteOne(long id);
}
