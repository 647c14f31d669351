package kubeletapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/agent/runtime/images/peers"
)

// LayersPath is where other nodes ask for the tar of a layer, by the digest of that tar.
const LayersPath = "/layers/"

const (
	// layersMax is how many layers are sent at once; further nodes get 503 and ask somebody else.
	layersMax = 8
	// layerWriteTime is how long a part of a layer may take to leave.
	layerWriteTime = 30 * time.Second
)

// Layers are those of a node's images.
type Layers interface {
	LayerState(digest string) peers.State
	WriteLayer(ctx context.Context, digest string, w io.Writer) error
}

// NodesToo says which paths other nodes may ask for.
func NodesToo(path string) bool { return strings.HasPrefix(path, LayersPath) }

// layer sends a layer, or for HEAD says what there is. A connection that ends in the middle says that it went wrong.
func (s *server) layer(w http.ResponseWriter, r *http.Request) {
	digest, state := r.PathValue("digest"), peers.None
	if s.Layers != nil {
		state = s.Layers.LayerState(digest)
	}
	w.Header().Set(peers.StateHeader, string(state))
	if state != peers.Here {
		http.NotFound(w, r)
		return
	}
	select {
	case s.layers <- struct{}{}:
		defer func() { <-s.layers }()
	default:
		http.Error(w, "this node sends as many layers as it does at once", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if r.Method == http.MethodHead {
		return
	}
	if err := s.Layers.WriteLayer(r.Context(), digest, &slowly{w, http.NewResponseController(w)}); err != nil {
		s.Logger.Debug("a layer was not sent whole", "layer", digest, "err", err)
		panic(http.ErrAbortHandler)
	}
}

// slowly gives each part of an answer its time.
type slowly struct {
	io.Writer
	control *http.ResponseController
}

func (s *slowly) Write(p []byte) (int, error) {
	if err := s.control.SetWriteDeadline(time.Now().Add(layerWriteTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return s.Writer.Write(p)
}
