package imagesocket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
)

const (
	// answerBytesMax bounds an answer that is no archive, and errorBytesMax the text of an error.
	answerBytesMax = 64 << 20
	errorBytesMax  = 64 << 10
)

var errBrokenOff = errors.New("the runtime ended before the pull did")

// Client asks the runtime that has the folder Dir.
type Client struct{ http http.Client }

// NewClient connects to nothing yet.
func NewClient(dir string) *Client {
	dial := func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		err = short(dir, func(path string) (err error) {
			conn, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
			return err
		})
		return conn, err
	}
	return &Client{http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// List asks for all images and pulls.
func (c *Client) List(ctx context.Context) (list List, err error) {
	err = c.ask(ctx, http.MethodGet, "/images", nil, &list)
	return list, err
}

// Import gives the images of an archive to the runtime.
func (c *Client) Import(ctx context.Context, archive io.Reader) (loaded []Image, err error) {
	err = c.ask(ctx, http.MethodPost, "/import", archive, &loaded)
	return loaded, err
}

// Prune removes the images that nothing uses or keeps.
func (c *Client) Prune(ctx context.Context) (pruned Pruned, err error) {
	err = c.ask(ctx, http.MethodPost, "/prune", nil, &pruned)
	return pruned, err
}

// Save copies images as one archive to w.
func (c *Client) Save(ctx context.Context, w io.Writer, refs ...string) error {
	body, err := c.call(ctx, http.MethodGet, "/save?"+url.Values{"image": refs}.Encode(), nil)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	return err
}

// Pull makes an image present, and tells again and again how far it is.
func (c *Client) Pull(ctx context.Context, image string, auth images.Auth, tell func(images.Pulling)) (Image, error) {
	order, err := json.Marshal(pullOrder{Image: image, Auth: auth})
	if err != nil {
		return Image{}, err
	}
	body, err := c.call(ctx, http.MethodPost, "/pull", bytes.NewReader(order))
	if err != nil {
		return Image{}, err
	}
	defer body.Close()
	for lines := json.NewDecoder(body); ; {
		var step pullStep
		if err := lines.Decode(&step); err != nil {
			return Image{}, errors.Join(errBrokenOff, err)
		}
		switch {
		case step.Error != "":
			return Image{}, errors.New(step.Error)
		case step.Image != nil:
			return *step.Image, nil
		case step.Progress != nil:
			tell(*step.Progress)
		}
	}
}

func (c *Client) ask(ctx context.Context, method, path string, body io.Reader, into any) error {
	answer, err := c.call(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	return json.NewDecoder(io.LimitReader(answer, answerBytesMax)).Decode(into)
}

func (c *Client) call(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://images"+path, body)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err // the address is no one's
		}
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, errorBytesMax))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", response.Status, err)
	}
	return nil, errors.New(strings.TrimSpace(string(text)))
}
