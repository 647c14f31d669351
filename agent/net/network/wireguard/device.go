package wireguard

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
)

// tunFile is where a process gets a device of its own.
const tunFile = "/dev/net/tun"

// ErrNone says that this machine can have no device.
var ErrNone = errors.New("the kernel has neither WireGuard devices (module wireguard) nor " + tunFile)

// end is where a device is told: the kernel or a process.
type end interface {
	read() (*wgtypes.Device, error)
	write(wgtypes.Config) error
}

// Device is a WireGuard device. Its methods are not for concurrent use.
type Device struct {
	Link netlink.Link
	end  end
}

// Probe makes a device that is never up, and removes it, or finds that a process can have one.
func Probe(name string) error {
	err := netlink.LinkAdd(kernelLink(name))
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		if _, err := os.Stat(tunFile); err != nil {
			return ErrNone
		}
		return nil
	case err != nil && !errors.Is(err, os.ErrExist): // one that another agent's probe made proves as much
		return fmt.Errorf("WireGuard device: %w", err)
	}
	return Remove(name)
}

func kernelLink(name string) *netlink.Wireguard {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = name
	return &netlink.Wireguard{LinkAttrs: attributes}
}

// Open makes the device, or adopts the one that is there. dir has the socket of its process, if it has one.
func Open(name, dir string) (*Device, error) {
	link, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		link, err = create(name, dir)
	}
	if err != nil {
		return nil, err
	}
	if link.Type() == kernelLink(name).Type() {
		return &Device{link, kernel(name)}, nil
	}
	d := &Device{link, process(socketPath(dir))}
	_, err = d.end.read()
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) { // nobody serves it: the next try makes another
		err = errors.Join(fmt.Errorf("%s is not served: %w", name, err), netlink.LinkDel(link))
	}
	return d, err
}

func create(name, dir string) (netlink.Link, error) {
	err := netlink.LinkAdd(kernelLink(name))
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = startProcess(name, dir)
	}
	if err != nil {
		return nil, err
	}
	return netlink.LinkByName(name)
}

// Remove takes away the device, if it is there. Its process ends by that.
func Remove(name string) error {
	_, err := link.Remove(name)
	return err
}

// Set makes the device what it should be.
func (d *Device) Set(wanted Config) error {
	present, err := d.end.read()
	if err != nil {
		return err
	}
	if c, none := changes(present, wanted); !none {
		return d.end.write(c)
	}
	return nil
}

// kernel is the device of that name.
type kernel string

func (k kernel) read() (d *wgtypes.Device, err error) {
	return d, k.with(func(c *wgctrl.Client) error { d, err = c.Device(string(k)); return err })
}

func (k kernel) write(config wgtypes.Config) error {
	return k.with(func(c *wgctrl.Client) error { return c.ConfigureDevice(string(k), config) })
}

func (kernel) with(do func(*wgctrl.Client) error) error {
	client, err := wgctrl.New()
	if err != nil {
		return err
	}
	return errors.Join(do(client), client.Close())
}
