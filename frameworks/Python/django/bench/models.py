"""Models of the benchmark's tables. tfb creates these tables."""

from django.db import models


class World(models.Model):
    """A row of the table world."""

    id = models.IntegerField(primary_key=True)
    randomnumber = models.IntegerField()

    class Meta:
        """Table name."""

        db_table = "world"
        managed = False

    def as_dict(self) -> dict[str, int]:
        """Return the row as it appears in responses."""
        return {"id": self.id, "randomNumber": self.randomnumber}


class Fortune(models.Model):
    """A row of the table fortune."""

    id = models.IntegerField(primary_key=True)
    message = models.CharField(max_length=2048)

    class Meta:
        """Table name."""

        db_table = "fortune"
        managed = False
