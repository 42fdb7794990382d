package tfb;

import io.smallrye.common.annotation.Blocking;
import io.smallrye.mutiny.Uni;
import jakarta.inject.Inject;
import jakarta.validation.Valid;
import jakarta.validation.constraints.NotNull;
import jakarta.ws.rs.Consumes;
import jakarta.ws.rs.DELETE;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.PUT;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.Context;
import jakarta.ws.rs.core.MediaType;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.core.Response.Status;
import jakarta.ws.rs.core.UriInfo;
import java.net.URI;
import java.util.List;

/** The /orders endpoints, which return Unis and run on worker threads. */
@Path("orders")
@Blocking
@Consumes(MediaType.APPLICATION_JSON)
@Produces(MediaType.APPLICATION_JSON)
public class OrderResource {

    @Inject
    AsyncOrders orders;

    @POST
    public Uni<Response> create(@NotNull @Valid NewOrder wanted) {
        return orders.create(wanted)
                .map(order -> Response.created(URI.create("/orders/" + order.id())).entity(order).build());
    }

    @GET
    public Uni<List<OrderSummary>> newest(@Context UriInfo uri) {
        return orders.newest(Limit.of(uri));
    }

    @GET
    @Path("{id}")
    public Uni<OrderView> read(@PathParam("id") OrderId id) {
        return orders.read(id.value());
    }

    @PUT
    @Path("{id}")
    public Uni<OrderView> changeCard(@PathParam("id") OrderId id, @NotNull @Valid CardChange change) {
        return orders.changeCard(id.value(), change.card());
    }

    @DELETE
    @Path("{id}")
    public Uni<Void> delete(@PathParam("id") OrderId id) {
        return orders.delete(id.value());
    }

    @GET
    @Path("{id}/items")
    public Uni<List<OrderItemView>> readItems(@PathParam("id") OrderId id) {
        return orders.read(id.value()).map(OrderView::items);
    }

    @POST
    @Path("{id}/items/{itemId}")
    public Uni<Response> addItem(
            @PathParam("id") OrderId id, @PathParam("itemId") ItemId itemId, @NotNull @Valid Quantity wanted) {
        return orders.addItem(id.value(), itemId, wanted.quantity())
                .map(order -> Response.status(Status.CREATED).entity(order).build());
    }

    @GET
    @Path("{id}/items/{itemId}")
    public Uni<OrderItemView> readItem(@PathParam("id") OrderId id, @PathParam("itemId") ItemId itemId) {
        return orders.readItem(id.value(), itemId.value());
    }

    @DELETE
    @Path("{id}/items/{itemId}")
    public Uni<Void> deleteItem(@PathParam("id") OrderId id, @PathParam("itemId") ItemId itemId) {
        return orders.deleteItem(id.value(), itemId.value());
    }

    @POST
    @Path("dataload")
    public Uni<Response> load(@NotNull @Valid DataLoad load) {
        return orders.load(load)
                .map(created -> Response.status(Status.CREATED).entity(new Created(created)).build());
    }
}
