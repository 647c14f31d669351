package main

import (
	"fmt"
	"net/http"
	"time"
)

// askMax is how long a URL is asked for.
const askMax = 2 * time.Second

// ask asks for a URL once, and says what came of it: the status, or why there is none.
func ask(url string) error {
	client := &http.Client{Timeout: askMax}
	answer, err := client.Get(url)
	if err != nil {
		fmt.Println("failed:", err)
		return nil
	}
	fmt.Println("answered:", answer.Status)
	return answer.Body.Close()
}
