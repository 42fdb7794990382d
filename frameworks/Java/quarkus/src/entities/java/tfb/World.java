package tfb;

import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;

/** A row of the {@code world} table. */
@Entity
@Table(name = "world")
public class World {

    @Id
    private int id;

    @Column(name = "randomnumber")
    private int randomNumber;

    public int getId() {
        return id;
    }

    public int getRandomNumber() {
        return randomNumber;
    }

    public void setRandomNumber(int randomNumber) {
        this.randomNumber = randomNumber;
    }
}
