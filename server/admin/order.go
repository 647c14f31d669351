package admin

import (
	"encoding/json"
	"errors"
	"io"
)

var errMore = errors.New("there is more after it")

// ReadOrder reads JSON that wants something: one value with fields that are known, and nothing after it. What it cannot make sense of
// would otherwise not be done, and nobody would know.
func ReadOrder(body io.Reader, order any) error {
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(order); err != nil {
		return err
	}
	switch _, err := decoder.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil || errors.As(err, new(*json.SyntaxError)):
		return errMore
	default:
		return err // of who reads: there may be nothing more
	}
}
