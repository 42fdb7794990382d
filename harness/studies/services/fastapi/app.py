"""A small shop. BURN is how many turns of a loop ``item`` wastes: the planted slowdown."""

import os

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

BURN = int(os.environ.get("BURN", "0"))
app = FastAPI()


class Item(BaseModel):
    """One that is sold."""

    id: int
    name: str
    price: int
    tags: list[str]


class Line(BaseModel):
    """Of an order."""

    id: int
    count: int


class Order(BaseModel):
    """What is asked for."""

    lines: list[Line]


ITEMS = [Item(id=i + 1, name=f"item {i + 1}", price=i * 37 % 900 + 99, tags=["new", "small"]) for i in range(1000)]


def waste(turns: int) -> int:
    """Use the CPU."""
    state = 1
    for _ in range(turns):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
    return state


@app.get("/items")
async def items(start: int) -> list[Item]:
    """Twenty of them."""
    return ITEMS[start : start + 20]


@app.get("/items/{number}")
async def item(number: int) -> Item:
    """One of them."""
    waste(BURN)
    if not 1 <= number <= len(ITEMS):
        raise HTTPException(status_code=404)
    return ITEMS[number - 1]


@app.post("/orders")
async def order(asked: Order) -> dict[str, object]:
    """What it costs."""
    lines = [
        {"id": line.id, "count": line.count, "price": ITEMS[line.id - 1].price * line.count} for line in asked.lines
    ]
    return {"lines": lines, "total": sum(int(line["price"]) for line in lines)}
