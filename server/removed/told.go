package removed

import (
	"encoding/json"
	"io"
	"net/http"
)

// answerBytesMax is how much is read of an answer.
const answerBytesMax = 16 << 10

// Error is what a server says that was removed.
type Error struct{ Name, Text string }

// Error implements error: one sentence, which says what to do.
func (e *Error) Error() string { return e.Text }

// Told returns an *Error if an answer is of a server that was removed, whose body it reads then; nil if it is of any other.
func Told(response *http.Response) error {
	name := response.Header.Get(Header)
	if name == "" {
		return nil
	}
	var said struct{ Message string } // of a Status, and of Connect
	_ = json.NewDecoder(io.LimitReader(response.Body, answerBytesMax)).Decode(&said)
	if said.Message == "" {
		said.Message = name + " was removed from this cluster"
	}
	return &Error{Name: name, Text: said.Message}
}
