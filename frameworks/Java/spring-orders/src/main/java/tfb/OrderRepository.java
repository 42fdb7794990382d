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

    /** By one statement, a join: its total and its items are of the same moment. */
    @EntityGraph(attributePaths = "items")
    Optional<Order> findWithItemsById(long id);

    /** Waits until no other transaction changes the order; its items are read afterwards, when they are asked for. */
    @Lock(LockModeType.PESSIMISTIC_WRITE)
    Optional<Order> findLockedById(long id);

    /** How many there were; the items go with the order, since the foreign key says so. */
    @Modifying
    @Query("delete from Order o where o.id = :id")
    int deleteOne(long id);
}
