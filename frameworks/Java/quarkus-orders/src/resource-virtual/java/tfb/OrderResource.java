package tfb;

import io.smallrye.common.annotation.RunOnVirtualThread;
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

/** The /orders endpoints, with one virtual thread per request. */
@Path("orders")
@RunOnVirtualThread
@Consumes(MediaType.APPLICATION_JSON)
@Produces(MediaType.APPLICATION_JSON)
public class OrderResource {

    @Inject
    Orders orders;

    @POST
    public Response create(@NotNull @Valid NewOrder wanted) {
        OrderView order = orders.create(wanted);
        return Response.created(URI.create("/orders/" + order.id())).entity(order).build();
    }

    @GET
    public List<OrderSummary> newest(@Context UriInfo uri) {
        return orders.newest(Limit.of(uri));
    }

    @GET
    @Path("{id}")
    public OrderView read(@PathParam("id") OrderId id) {
        return orders.read(id.value());
    }

    @PUT
    @Path("{id}")
    public OrderView changeCard(@PathParam("id") OrderId id, @NotNull @Valid CardChange change) {
        return orders.changeCard(id.value(), change.card());
    }

    @DELETE
    @Path("{id}")
    public void delete(@PathParam("id") OrderId id) {
        orders.delete(id.value());
    }

    @GET
    @Path("{id}/items")
    public List<OrderItemView> readItems(@PathParam("id") OrderId id) {
        return orders.read(id.value()).items();
    }

    @POST
    @Path("{id}/items/{itemId}")
    public Response addItem(
            @PathParam("id") OrderId id, @PathParam("itemId") ItemId itemId, @NotNull @Valid Quantity wanted) {
        OrderView order = orders.addItem(id.value(), itemId, wanted.quantity());
        return Response.status(Status.CREATED).entity(order).build();
    }

    @GET
    @Path("{id}/items/{itemId}")
    public OrderItemView readItem(@PathParam("id") OrderId id, @PathParam("itemId") ItemId itemId) {
        return orders.readItem(id.value(), itemId.value());
    }

    @DELETE
    @Path("{id}/items/{itemId}")
    public void deleteItem(@PathParam("id") OrderId id, @PathParam("itemId") ItemId itemId) {
        orders.deleteItem(id.value(), itemId.value());
    }

    @POST
    @Path("dataload")
    public Response load(@NotNull @Valid DataLoad load) {
        Created created = new Created(orders.load(load));
        return Response.status(Status.CREATED).entity(created).build();
    }
}
