package flowcontrol

import (
	"net/http"
	"net/url"
	"strconv"

	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// A list takes a seat for each so many objects or bytes that it reads, whichever is
	// more, as upstream; and at most listSeatsLimit.
	objectsPerSeat = 100
	bytesPerSeat   = 100_000
	listSeatsLimit = 10
)

// Sizes returns how many objects a request for several of a kind reads, and how many bytes
// they have. It may stop to count at the limits.
type Sizes func(info *request.RequestInfo, objectsLimit, bytesLimit int) (objects, bytes int)

// NotedKey finds, in the context of a request, where its width is noted. Whoever makes the context may have a Noted there.
type NotedKey struct{}

// Noted is the width of a request, so that its list is measured once, whoever asks. The zero value is ready; one goroutine uses it.
type Noted struct {
	verb  string // with which it was measured: a deletion of many is also looked at as the list that it begins with
	width int
}

// Width is how many seats a request takes. What was noted counts, if the verb is the same.
func (f *Fairness) Width(r *http.Request, info *request.RequestInfo) int {
	noted, _ := r.Context().Value(NotedKey{}).(*Noted)
	if noted != nil && noted.width > 0 && noted.verb == info.Verb {
		return noted.width
	}
	width := f.measure(r, info)
	if noted != nil {
		*noted = Noted{info.Verb, width}
	}
	return width
}

func (f *Fairness) measure(r *http.Request, info *request.RequestInfo) int {
	if f.sizes == nil || !info.IsResourceRequest || info.Name != "" || info.Subresource != "" {
		return 1
	}
	objectsLimit := listSeatsLimit * objectsPerSeat
	switch info.Verb {
	case "list":
		objectsLimit = pageOf(r.URL.Query(), objectsLimit)
	case "watch":
		if !beginsWithAll(r.URL.Query()) {
			return 1
		}
	default:
		return 1
	}
	return widthOf(f.sizes(info, objectsLimit, listSeatsLimit*bytesPerSeat))
}

// pageOf is how many objects a list reads: with a selector it looks at all for a page of some.
func pageOf(query url.Values, objectsLimit int) int {
	page, err := strconv.Atoi(query.Get("limit"))
	if err != nil || page <= 0 || query.Get("labelSelector") != "" || query.Get("fieldSelector") != "" {
		return objectsLimit
	}
	return min(page, objectsLimit)
}

// beginsWithAll: such a watch sends all that is there first, as a list would.
func beginsWithAll(query url.Values) bool {
	version := query.Get("resourceVersion")
	return version == "" || version == "0" || query.Get("sendInitialEvents") == "true"
}

func widthOf(objects, bytes int) int {
	seats := max((objects+objectsPerSeat-1)/objectsPerSeat, (bytes+bytesPerSeat-1)/bytesPerSeat)
	return max(1, min(seats, listSeatsLimit))
}
