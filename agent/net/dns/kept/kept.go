package kept

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/base/private"
)

// sizeMax bounds what is read, in bytes before compression: some 100,000 Services with their slices.
const sizeMax = 256 << 20

// ErrDamaged: the file is not as Save left it.
var ErrDamaged = errors.New("the file of names is damaged")

// Names are the objects.
type Names struct {
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice
}

// Save replaces the file. It returns when the data is on disk.
func Save(path string, names Names) error {
	var services corev1.ServiceList
	for _, s := range names.Services {
		services.Items = append(services.Items, corev1.Service{ObjectMeta: named(s), Spec: s.Spec})
	}
	var slices discoveryv1.EndpointSliceList
	for _, s := range names.Slices {
		slices.Items = append(slices.Items, discoveryv1.EndpointSlice{
			ObjectMeta: named(s), AddressType: s.AddressType, Endpoints: s.Endpoints, Ports: s.Ports,
		})
	}
	var file bytes.Buffer
	compressed := gzip.NewWriter(&file)
	if err := errors.Join(write(compressed, &services), write(compressed, &slices), compressed.Close()); err != nil {
		return err
	}
	return private.WriteFile(path, file.Bytes())
}

// named is of an object's metadata what names are made from.
func named(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), Labels: o.GetLabels()}
}

// write writes a list after its length.
func write(to io.Writer, list interface{ Marshal() ([]byte, error) }) error {
	data, err := list.Marshal()
	if err != nil {
		return err
	}
	_, err = to.Write(append(binary.AppendUvarint(nil, uint64(len(data))), data...))
	return err
}

// Load reads the file; os.ErrNotExist if there is none, ErrDamaged if it cannot be what Save wrote.
func Load(path string) (Names, error) {
	file, err := os.Open(path)
	if err != nil {
		return Names{}, err
	}
	defer file.Close()
	names, err := read(file)
	if err != nil {
		return Names{}, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return names, nil
}

func read(file io.Reader) (names Names, err error) {
	plain, err := gzip.NewReader(file)
	if err != nil {
		return Names{}, err
	}
	all, err := io.ReadAll(io.LimitReader(plain, sizeMax+1)) // to its end, where the checksum is
	if err == nil && len(all) > sizeMax {
		err = fmt.Errorf("more than %d bytes", sizeMax)
	}
	if err != nil {
		return Names{}, err
	}
	var services corev1.ServiceList
	var slices discoveryv1.EndpointSliceList
	if all, err = take(all, &services); err == nil {
		all, err = take(all, &slices)
	}
	if err == nil && len(all) > 0 {
		err = errors.New("something follows the lists")
	}
	if err != nil {
		return Names{}, err
	}
	for i := range services.Items {
		names.Services = append(names.Services, &services.Items[i])
	}
	for i := range slices.Items {
		names.Slices = append(names.Slices, &slices.Items[i])
	}
	return names, nil
}

// take reads a list from the beginning of data and returns the rest.
func take(data []byte, list interface{ Unmarshal([]byte) error }) ([]byte, error) {
	length, n := binary.Uvarint(data)
	if n <= 0 || length > uint64(len(data)-n) {
		return nil, io.ErrUnexpectedEOF
	}
	end := n + int(length)
	return data[end:], list.Unmarshal(data[n:end])
}
