package tfb;

import java.util.List;

/** The request body for creating an order. */
record NewOrder(int customerId, String card, List<Item> items) {

    record Item(int itemId, int quantity) {
    }

    List<Integer> itemIds() {
        return items.stream().map(Item::itemId).toList();
    }
}
