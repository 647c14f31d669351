package bandwidth

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
)

// Annotations of a pod that limit what it receives and sends, in bits a second:
// https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/network-plugins/#support-traffic-shaping.
const (
	ingressAnnotation = "kubernetes.io/ingress-bandwidth"
	egressAnnotation  = "kubernetes.io/egress-bandwidth"
)

const (
	bitsPerByte = 8
	// limitMin and limitMax are upstream's, in bits a second.
	limitMin = 1_000
	limitMax = 1_000_000_000_000_000
	// A pod that was quiet may send a tenth of a second's bytes at once, and at least two full packets.
	burstsPerSecond = 10
	burstBytesMin   = 4 << 10
	// What waits longer than a fortieth of a second, 25 ms, is dropped.
	waitsPerSecond = 40
)

// Limits of a pod, in bits a second; 0 is none.
type Limits struct {
	Ingress, Egress uint64
}

// Of reads a pod's annotations.
func Of(annotations map[string]string) (l Limits, err error) {
	if l.Ingress, err = bitsPerSecond(annotations, ingressAnnotation); err != nil {
		return l, err
	}
	l.Egress, err = bitsPerSecond(annotations, egressAnnotation)
	return l, err
}

func bitsPerSecond(annotations map[string]string, name string) (uint64, error) {
	text, ok := annotations[name]
	if !ok {
		return 0, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("annotation %s: %q: %w", name, text, err)
	}
	if value := quantity.Value(); value < limitMin || value > limitMax {
		return 0, fmt.Errorf("annotation %s: %q is not between 1k and 1P bits a second", name, text)
	}
	return uint64(quantity.Value()), nil
}

// Apply makes the kernel delay, and drop at last, what goes beyond the limits: packets to the pod where they leave the
// machine's end of its pair, those from it in a device of their own, because what comes in cannot be delayed.
func (l Limits) Apply(pair netlink.Link) error {
	if l.Ingress > 0 {
		if err := shape(pair, l.Ingress); err != nil {
			return fmt.Errorf("ingress bandwidth: %w", err)
		}
	}
	if l.Egress > 0 {
		if err := shapeIncoming(pair, l.Egress); err != nil {
			return fmt.Errorf("egress bandwidth: %w", err)
		}
	}
	return nil
}

func shape(link netlink.Link, bits uint64) error {
	rate := bits / bitsPerByte
	burst := max(burstBytesMin, rate/burstsPerSecond)
	return netlink.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       rate,
		Buffer:     netlink.Xmittime(rate, clamped(burst)),
		Limit:      clamped(burst + rate/waitsPerSecond),
	})
}

func clamped(bytes uint64) uint32 { return uint32(min(bytes, 1<<32-1)) }

// shapeIncoming leads all that comes in by the link through a device that delays it.
func shapeIncoming(link netlink.Link, bits uint64) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = Device(link.Attrs().Name)
	device := &netlink.Ifb{LinkAttrs: attributes}
	if err := netlink.LinkAdd(device); err != nil {
		return fmt.Errorf("%s: %w", attributes.Name, err)
	}
	if err := errors.Join(netlink.LinkSetUp(device), shape(device, bits)); err != nil {
		return fmt.Errorf("%s: %w", attributes.Name, err)
	}
	ingress := netlink.MakeHandle(0xffff, 0)
	err := netlink.QdiscAdd(&netlink.Ingress{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: ingress, Parent: netlink.HANDLE_INGRESS},
	})
	if err != nil {
		return err
	}
	return netlink.FilterAdd(&netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: link.Attrs().Index, Parent: ingress, Priority: 1, Protocol: unix.ETH_P_ALL},
		ClassId:     netlink.MakeHandle(1, 1),
		Actions:     []netlink.Action{netlink.NewMirredAction(device.Index)},
	})
}

// devicePrefix takes the place of a host interface's in the name of its device, which is as long.
const devicePrefix = "sd"

// Device is the one that delays what comes in by a pod's interface on the host.
func Device(hostInterface string) string { return devicePrefix + hostInterface[len(devicePrefix):] }

// Remove removes the device of a pod that sends with a limit; other pods have none.
func Remove(hostInterface string) error {
	if len(hostInterface) < len(devicePrefix) {
		return nil // a pod that was never connected
	}
	_, err := link.Remove(Device(hostInterface))
	return err
}

// RemoveAll removes the devices of pods that ended without an agent; bytes is how long the names of host interfaces are.
func RemoveAll(bytes int) (removed []string, err error) {
	links, err := link.List()
	if err != nil {
		return nil, err
	}
	for _, found := range links {
		name := found.Attrs().Name
		if _, ok := found.(*netlink.Ifb); !ok || !strings.HasPrefix(name, devicePrefix) || len(name) != bytes {
			continue
		}
		if failed := link.Delete(found); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, failed))
			continue
		}
		removed = append(removed, "device "+name)
	}
	return removed, err
}
