package kubeletapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/setpoint-io/setpoint/agent/volumes/local"
	"github.com/setpoint-io/setpoint/internal/localvolume"
)

// bodyMax bounds what a request about one volume has to say.
const bodyMax = 4096

// localVolumes adds the endpoints of the volumes on this node's disk.
func (s *server) localVolumes(mux *routes) {
	if s.LocalVolumes == nil {
		return
	}
	mux.HandleFunc("GET "+localvolume.Endpoint, func(w http.ResponseWriter, _ *http.Request) {
		handles, err := s.LocalVolumes.List()
		answerVolume(w, localvolume.List{Handles: handles}, err)
	})
	mux.HandleFunc("PUT "+localvolume.Endpoint+"/{handle}", func(w http.ResponseWriter, r *http.Request) {
		var want localvolume.Volume
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyMax)).Decode(&want); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		made, err := s.LocalVolumes.Make(r.PathValue("handle"), want)
		answerVolume(w, made, err)
	})
	mux.HandleFunc("DELETE "+localvolume.Endpoint+"/{handle}", func(w http.ResponseWriter, r *http.Request) {
		err := s.LocalVolumes.Remove(r.PathValue("handle"), r.URL.Query().Has(localvolume.OnlyEmpty))
		answerVolume(w, struct{}{}, err)
	})
}

func answerVolume(w http.ResponseWriter, answer any, err error) {
	switch {
	case errors.Is(err, local.ErrHandle), errors.Is(err, local.ErrMode), errors.Is(err, local.ErrSize):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		writeJSON(w, answer)
	}
}
