package revisions

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// prefixMaxBytes is how much of the owner's name a revision's name begins with.
const prefixMaxBytes = 223

// TemplateHash names a template for Deployments and DaemonSets. It is the hash
// that Kubernetes uses, so that objects moved here from elsewhere keep their pods.
func TemplateHash(template *corev1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dump.ForHash(*template)))
	if collisions != nil {
		var salt [8]byte
		binary.LittleEndian.PutUint32(salt[:], uint32(*collisions))
		_, _ = h.Write(salt[:])
	}
	return encoded(h.Sum32())
}

// DataHash names the data of a revision for StatefulSets, as Kubernetes does.
func DataHash(data []byte, collisions *int32) string {
	h := fnv.New32()
	_, _ = h.Write(data)
	if collisions != nil {
		_, _ = h.Write([]byte(strconv.FormatInt(int64(*collisions), 10)))
	}
	return encoded(h.Sum32())
}

func encoded(sum uint32) string {
	return rand.SafeEncodeString(strconv.FormatUint(uint64(sum), 10))
}

// Name is the name of a StatefulSet's revision: a long name of the owner is cut,
// so that the hash always fits. A DaemonSet's is not cut.
func Name(owner, hash string) string {
	return owner[:min(len(owner), prefixMaxBytes)] + "-" + hash
}
