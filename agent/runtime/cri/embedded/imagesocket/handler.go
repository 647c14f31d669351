package imagesocket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
)

const (
	// orderBytesMax bounds the body of an order to pull.
	orderBytesMax = 64 << 10
	// progressInterval is how often a pull tells how far it is.
	progressInterval = 250 * time.Millisecond
)

func (c Config) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /images", c.list)
	mux.HandleFunc("POST /pull", c.pull)
	mux.HandleFunc("POST /import", c.load)
	mux.HandleFunc("GET /save", c.save)
	mux.HandleFunc("POST /prune", c.prune)
	return mux
}

func (c Config) list(w http.ResponseWriter, _ *http.Request) {
	use, err := c.Use()
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, List{Images: summaries(c.Store.List(), use), Pulling: c.Store.Pulling()})
}

// pull answers with a line of JSON for each step; the last one has the image or an error.
func (c Config) pull(w http.ResponseWriter, r *http.Request) {
	var order pullOrder
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, orderBytesMax)).Decode(&order); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	normal, err := images.Normalize(order.Image)
	if err != nil {
		refuse(w, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	done := make(chan pullStep, 1)
	go func() { done <- c.pulled(ctx, normal, order.Auth) }()
	ticks := time.NewTicker(progressInterval)
	defer ticks.Stop()
	lines := json.NewEncoder(w)
	for {
		select {
		case last := <-done:
			_ = lines.Encode(last) // the client has gone
			return
		case <-ticks.C:
			if err := lines.Encode(pullStep{Progress: c.progress(normal)}); err != nil {
				cancel()
			}
			_ = http.NewResponseController(w).Flush() // it can
		}
	}
}

func (c Config) pulled(ctx context.Context, normal string, auth images.Auth) pullStep {
	image, err := c.Store.Pull(ctx, normal, auth)
	if err != nil {
		return pullStep{Error: err.Error()}
	}
	summary := summaryOf(image, images.Use{})
	return pullStep{Image: &summary}
}

func (c Config) progress(normal string) *images.Pulling {
	for _, p := range c.Store.Pulling() {
		if p.Image == normal {
			return &p
		}
	}
	return nil
}

func (c Config) load(w http.ResponseWriter, r *http.Request) {
	loaded, err := c.Store.Import(r.Body) // which is bounded there
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, summaries(loaded, images.Use{}))
}

// save breaks the connection off if the archive cannot be finished.
func (c Config) save(w http.ResponseWriter, r *http.Request) {
	out := &begun{ResponseWriter: w}
	err := c.Store.Save(r.Context(), out, r.URL.Query()["image"]...)
	switch {
	case err == nil:
	case !out.begun:
		refuse(w, err)
	default:
		c.Logger.Warn("save images", "err", err)
		panic(http.ErrAbortHandler)
	}
}

// begun knows whether a part of the answer has gone.
type begun struct {
	http.ResponseWriter
	begun bool
}

// Write implements io.Writer.
func (b *begun) Write(data []byte) (int, error) {
	b.begun = true
	return b.ResponseWriter.Write(data)
}

func (c Config) prune(w http.ResponseWriter, _ *http.Request) {
	use, err := c.Use()
	if err != nil {
		refuse(w, err)
		return
	}
	collected, err := c.Store.Collect(use)
	if err != nil {
		refuse(w, fmt.Errorf("%d images removed, then: %w", len(collected.Images), err))
		return
	}
	answer(w, Pruned{Images: summaries(collected.Images, images.Use{}), FreedBytes: collected.FreedBytes})
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client has gone
}

func refuse(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, images.ErrNotFound):
		code = http.StatusNotFound
	case errors.Is(err, images.ErrInvalidName):
		code = http.StatusBadRequest
	}
	http.Error(w, err.Error(), code)
}
