package storage

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Cached is a decoded object shared by all readers, with its encodings: each content type is encoded once, however many watchers ask for
// it, as long as there is room for it: see encodingsKept.
type Cached struct {
	object resource.Object
	// encodings begins a list that grows at its front, and each leaves it when it is forgotten: a map for
	// each object would be larger than many objects, and the few that there are soon searched.
	encodings atomic.Pointer[encoding]

	mu sync.Mutex
	// views are what tables of a dynamic kind make of it, by version.
	views map[string]view
}

var (
	_ runtime.CacheableObject   = (*Cached)(nil)
	_ metav1.ObjectMetaAccessor = (*Cached)(nil)
)

// Object returns the shared object. Do not change it.
func (c *Cached) Object() resource.Object { return c.object }

// Copy returns an object that the caller may change.
func (c *Cached) Copy() resource.Object { return c.object.DeepCopyObject().(resource.Object) }

// CacheEncode implements runtime.CacheableObject.
func (c *Cached) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	text, err := c.encoded(id, func() ([]byte, error) {
		var b bytes.Buffer
		err := encode(shallowCopy(c.object), &b) // encoders set the type on what they encode
		return b.Bytes(), err
	})
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// GetObject implements runtime.CacheableObject.
func (c *Cached) GetObject() runtime.Object { return c.Copy() }

// GetObjectMeta lets meta.Accessor read the shared object's metadata.
func (c *Cached) GetObjectMeta() metav1.Object { return c.object }

// GetObjectKind implements runtime.Object.
func (c *Cached) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (c *Cached) DeepCopyObject() runtime.Object { return &Cached{object: c.Copy()} }

// Uncache returns the object behind a Cached or a List, or obj itself.
func Uncache(obj runtime.Object) runtime.Object {
	switch c := obj.(type) {
	case *Cached:
		return c.object
	case *List:
		return c.Full()
	default:
		return obj
	}
}
