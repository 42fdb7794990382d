package tfb;

import jakarta.validation.Valid;
import jakarta.validation.constraints.AssertTrue;
import jakarta.validation.constraints.NotNull;
import jakarta.validation.constraints.Pattern;
import jakarta.validation.constraints.Size;
import java.util.List;
import java.util.Objects;

/** The request body of POST /orders. */
public record NewOrder(
        @NotNull Integer customerId,
        @NotNull @Pattern(regexp = CardChange.NUMBER) String card,
        @NotNull @Size(min = 1, max = 20) List<@NotNull @Valid NewOrderItem> items) {

    /** Returns whether every item occurs only once. Bean Validation checks this in addition to the fields. */
    @AssertTrue(message = "must not contain the same item twice")
    public boolean isWithoutRepetition() {
        return items == null || itemIds().size() == itemIds().stream().distinct().count();
    }

    List<Integer> itemIds() {
        return items.stream().filter(Objects::nonNull).map(NewOrderItem::itemId).toList();
    }

    /** Returns the order at current prices, or fails with 400 if the customer or an item does not exist. */
    Order toOrder(Customer customer, List<Item> priced) {
        if (customer == null) {
            throw Problems.badRequest("There is no customer " + customerId);
        }
        Order order = new Order(customer, card);
        for (NewOrderItem wanted : items) {
            Item item = priced.stream().filter(one -> one.getId().equals(wanted.itemId())).findFirst()
                    .orElseThrow(() -> Problems.unknownItem(wanted.itemId()));
            order.add(item, wanted.quantity());
        }
        return order;
    }
}
