"""A small shop. Each ``item`` request first runs BURN loop iterations, which simulate a performance regression."""

import os

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

BURN = int(os.environ.get("BURN", "0"))
app = FastAPI()


class Item(BaseModel):
    """A shop item."""

    id: int
    name: str
    price: int
    tags: list[str]


class OrderLine(BaseModel):
    """An item's id and the quantity to order."""

    id: int
    count: int


class RequestedOrder(BaseModel):
    """The body of ``POST /orders``."""

    lines: list[OrderLine]


ITEMS = [Item(id=i + 1, name=f"item {i + 1}", price=i * 37 % 900 + 99, tags=["new", "small"]) for i in range(1000)]


def waste(turns: int) -> int:
    """Waste CPU time in a loop with ``turns`` iterations."""
    state = 1
    for _ in range(turns):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
    return state


@app.get("/items")
async def items(start: int) -> list[Item]:
    """Return twenty items, beginning at index ``start``."""
    return ITEMS[start : start + 20]


@app.get("/items/{number}")
async def item(number: int) -> Item:
    """Return an item. Raises HTTPException with status 404 if the item does not exist."""
    waste(BURN)
    if not 1 <= number <= len(ITEMS):
        raise HTTPException(status_code=404)
    return ITEMS[number - 1]


@app.post("/orders")
async def order(asked: RequestedOrder) -> dict[str, object]:
    """Return the order's lines with prices, and the total price."""
    lines = [
        {"id": line.id, "count": line.count, "price": ITEMS[line.id - 1].price * line.count} for line in asked.lines
    ]
    return {"lines": lines, "total": sum(int(line["price"]) for line in lines)}
