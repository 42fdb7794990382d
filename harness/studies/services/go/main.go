// A small shop. Each "item" request first runs BURN loop iterations, which simulate a performance regression.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"

	"github.com/gin-gonic/gin"
)

type item struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Price int      `json:"price"`
	Tags  []string `json:"tags"`
}

type line struct {
	ID    int `json:"id"`
	Count int `json:"count"`
	Price int `json:"price"`
}

var sink uint32

func waste(turns int) {
	state := uint32(1)
	for turn := 0; turn < turns; turn++ {
		state = state*1664525 + 1013904223
	}
	sink = state
}

func main() {
	burn, _ := strconv.Atoi(os.Getenv("BURN"))
	items := make([]item, 1000)
	for i := range items {
		items[i] = item{ID: i + 1, Name: fmt.Sprintf("item %d", i+1), Price: i*37%900 + 99, Tags: []string{"new", "small"}}
	}
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/items", func(c *gin.Context) {
		from, _ := strconv.Atoi(c.Query("start"))
		c.JSON(http.StatusOK, items[from:from+20])
	})
	router.GET("/items/:id", func(c *gin.Context) {
		waste(burn)
		id, err := strconv.Atoi(c.Param("id"))
		if err != nil || id < 1 || id > len(items) {
			c.JSON(http.StatusNotFound, gin.H{"error": "no such item"})
			return
		}
		c.JSON(http.StatusOK, items[id-1])
	})
	router.POST("/orders", func(c *gin.Context) {
		var asked struct {
			Lines []line `json:"lines"`
		}
		if err := c.ShouldBindJSON(&asked); err != nil {
			c.JSON(http.StatusBadRequest, gin.H{"error": err.Error()})
			return
		}
		total := 0
		for i := range asked.Lines {
			asked.Lines[i].Price = items[asked.Lines[i].ID-1].Price * asked.Lines[i].Count
			total += asked.Lines[i].Price
		}
		c.JSON(http.StatusOK, gin.H{"lines": asked.Lines, "total": total})
	})
	log.Fatal(router.Run("127.0.0.1:" + os.Getenv("PORT")))
}
