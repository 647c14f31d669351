package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

var nodesResource = corev1.SchemeGroupVersion.WithResource("nodes")

// nodesPath is where Nodes are made; below it each is read.
const nodesPath = "/api/v1/nodes"

var (
	// ErrNodeKey says that a name belongs to another machine now.
	ErrNodeKey = errors.New("another machine has joined under this name: reset this one, and join with a new token under another name")
	// ErrNoNode says that the certificate of a node counts for nothing but registering.
	ErrNoNode = errors.New("there is no such Node: it was deleted, or the machine has not registered yet, which is all that it may do now")
)

// NodeKeys says whose the names of nodes are.
type NodeKeys struct {
	store        *storage.Store
	certificates nodeCertificates
}

// NewNodeKeys reads the Nodes in the store.
func NewNodeKeys(store *storage.Store) *NodeKeys { return &NodeKeys{store: store} }

// Judge fails if a certificate of a node is shown that counts no more: with ErrNodeKey if its key is not that which joined under the name
// (trust.NodeKeyAnnotation), with ErrNoNode if there is no Node, unless the request registers one. A Node without a key registered in
// another way, as stock kubelets do, whose keys change. A nil NodeKeys lets all in.
func (k *NodeKeys) Judge(request *http.Request, who revocation.Identity) error {
	node, ok := trust.NodeOfUser(who.User)
	if k == nil || !ok || who.Key == "" {
		return nil
	}
	var err error
	for _, version := range []string{"0", ""} { // what this replica does not know, it may not know yet
		var known nodeKey
		if known, err = k.of(request.Context(), node, version); err != nil {
			return fmt.Errorf("whose the name of node %s is cannot be looked up: %w", node, err)
		}
		switch {
		case known == nodeKey(who.Key) || known == anyKey:
			k.certificates.seen(node, request.TLS)
			return nil
		case known == noNode && registers(request, node):
			return nil
		case known == noNode:
			err = ErrNoNode
		default:
			err = ErrNodeKey
		}
	}
	return fmt.Errorf("node %s: %w", node, err)
}

// nodeKey is the hash of the key that a name belongs to, or one of these.
type nodeKey string

const (
	noNode nodeKey = "no Node"
	anyKey nodeKey = ""
)

func (k *NodeKeys) of(ctx context.Context, node, version string) (nodeKey, error) {
	found, err := k.store.Table(nodesResource).Get(ctx, "", node, version)
	if apierrors.IsNotFound(err) {
		return noNode, nil
	}
	if err != nil {
		return "", err
	}
	return nodeKey(found.Object().(*corev1.Node).Annotations[trust.NodeKeyAnnotation]), nil
}

// registers reports whether a request makes a Node, which must be the author's own (admission), or asks whether his is there.
func registers(request *http.Request, node string) bool {
	switch request.Method {
	case http.MethodPost:
		return request.URL.Path == nodesPath
	case http.MethodGet:
		return request.URL.Path == nodesPath+"/"+node
	}
	return false
}

// KeyShown is the hash of the key that the connection of a request has shown with a certificate of the user, "" if it has shown none. The
// connection must be one of WithConnection.
func KeyShown(ctx context.Context, user string) string {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	if c == nil {
		return ""
	}
	if last := c.last.Load(); last != nil && last.response.User.GetName() == user {
		return last.key
	}
	return ""
}
