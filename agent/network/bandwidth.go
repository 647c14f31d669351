package network

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Annotations of a pod that limit what it receives and sends, in bits a second:
// https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/network-plugins/#support-traffic-shaping.
const (
	ingressAnnotation = "kubernetes.io/ingress-bandwidth"
	egressAnnotation  = "kubernetes.io/egress-bandwidth"
)

const (
	bitsPerByte = 8
	// bandwidthMin and bandwidthMax are upstream's, in bits a second.
	bandwidthMin = 1_000
	bandwidthMax = 1_000_000_000_000_000
	// A pod that was quiet may send a tenth of a second's bytes at once, and at least two full packets.
	burstsPerSecond = 10
	burstBytesMin   = 4 << 10
	// What waits longer than a fortieth of a second, 25 ms, is dropped.
	waitsPerSecond = 40
)

// Bandwidth limits a pod, in bits a second; 0 does not.
type Bandwidth struct {
	Ingress, Egress uint64
}

// BandwidthOf reads a pod's annotations.
func BandwidthOf(annotations map[string]string) (b Bandwidth, err error) {
	if b.Ingress, err = bitsPerSecond(annotations, ingressAnnotation); err != nil {
		return b, err
	}
	b.Egress, err = bitsPerSecond(annotations, egressAnnotation)
	return b, err
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
	if value := quantity.Value(); value < bandwidthMin || value > bandwidthMax {
		return 0, fmt.Errorf("annotation %s: %q is not between 1k and 1P bits a second", name, text)
	}
	return uint64(quantity.Value()), nil
}

// limit makes the kernel delay, and drop at last, what goes beyond the limits: packets to the pod where they leave the
// machine's end of its pair, those from it in a device of their own, because what comes in cannot be delayed.
func (b Bandwidth) limit(pair netlink.Link) error {
	if b.Ingress > 0 {
		if err := shape(pair, b.Ingress); err != nil {
			return fmt.Errorf("ingress bandwidth: %w", err)
		}
	}
	if b.Egress > 0 {
		if err := shapeIncoming(pair, b.Egress); err != nil {
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
	attributes.Name = delayDevice(link.Attrs().Name)
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

// delayDevicePrefix takes the place of a host interface's in the name of its device.
const delayDevicePrefix = "sd"

func delayDevice(hostInterface string) string {
	return delayDevicePrefix + hostInterface[len(hostInterfacePrefix):]
}

// removeDelay removes the device of a pod that sends with a limit; other pods have none.
func removeDelay(hostInterface string) error {
	if len(hostInterface) < len(hostInterfacePrefix) {
		return nil // a pod that was never connected
	}
	link, err := netlink.LinkByName(delayDevice(hostInterface))
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := netlink.LinkDel(link); err != nil && !isGone(err) {
		return err
	}
	return nil
}

// uninstallDelays removes the devices of pods that ended without an agent.
func uninstallDelays() (removed []string, err error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		name := link.Attrs().Name
		if _, ok := link.(*netlink.Ifb); !ok || !strings.HasPrefix(name, delayDevicePrefix) || len(name) != len(HostInterface("")) {
			continue
		}
		if failed := netlink.LinkDel(link); failed != nil && !isGone(failed) {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, failed))
			continue
		}
		removed = append(removed, "device "+name)
	}
	return removed, err
}
