"""Models for the benchmark's tables, which tfb creates."""

from django.db import models


class World(models.Model):
    """A row of the ``world`` table."""

    id = models.IntegerField(primary_key=True)
    randomnumber = models.IntegerField()

    class Meta:
        """Metadata of a table that Django neither creates nor migrates."""

        db_table = "world"
        managed = False

    def as_dict(self) -> dict[str, int]:
        """Return the row as it appears in responses."""
        return {"id": self.id, "randomNumber": self.randomnumber}


class Fortune(models.Model):
    """A row of the ``fortune`` table."""

    id = models.IntegerField(primary_key=True)
    message = models.CharField(max_length=2048)

    class Meta:
        """Metadata of a table that Django neither creates nor migrates."""

        db_table = "fortune"
        managed = False
