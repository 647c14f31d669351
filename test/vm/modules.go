package vm

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"
)

// modules are what the tests need of a Debian kernel beside what is built in. A kernel at work loads most of them when they are
// first asked for, by a program of its distribution that is not here.
var modules = []string{
	// The disk, its file system, and what containers are made of.
	"virtio_pci", "virtio_blk", "virtio_console", "crc32c_generic", "ext4", "quota_v2", "loop", "overlay", "fuse", "tun",
	// The network of pods and nodes.
	"veth", "bridge", "br_netfilter", "dummy", "vxlan", "wireguard", "sctp", "sctp_diag", "tcp_diag", "udp_diag", "inet_diag",
	"sch_tbf", "sch_htb", "sch_ingress", "sch_netem", "sch_fq", "act_police", "act_mirred", "cls_u32", "cls_matchall", "ifb",
	// What nftables' rules are made of.
	"nf_tables", "nf_conntrack", "nf_conntrack_netlink", "nfnetlink_queue", "nfnetlink_log", "nf_nat", "nft_chain_nat", "nft_ct",
	"nft_nat", "nft_masq", "nft_redir", "nft_reject", "nft_reject_inet", "nft_reject_ipv4", "nft_reject_ipv6", "nft_fib", "nft_fib_inet",
	"nft_fib_ipv4", "nft_fib_ipv6", "nft_limit", "nft_numgen", "nft_hash", "nft_log", "nft_queue", "nft_quota", "nft_objref",
	"nft_connlimit", "nft_socket", "nft_tproxy", "nft_synproxy", "nft_meta_bridge", "nft_reject_bridge", "nf_conntrack_bridge",
}

// optional are modules that some kernels have built in under another name, or have left.
var optional = map[string]bool{"crc32c_generic": true, "nft_objref": true, "sctp_diag": true}

// A Kernel tells of the modules of one kernel.
type Kernel struct {
	// Image returns the bytes of a module, nil if the kernel has no such file.
	Image func(name string) ([]byte, error)
	// BuiltIn says whether the kernel has it without a file.
	BuiltIn func(name string) bool
}

// A Module is one to be loaded.
type Module struct {
	Name  string
	Image []byte
}

// LoadOrder returns the modules the tests need, each after those that it depends on.
func LoadOrder(kernel Kernel) ([]Module, error) {
	o := order{kernel: kernel, needs: dependencies, seen: map[string]bool{}}
	for _, name := range modules {
		if err := o.add(name); err != nil {
			return nil, err
		}
	}
	return o.modules, nil
}

type order struct {
	kernel  Kernel
	needs   func(image []byte) ([]string, error)
	seen    map[string]bool
	modules []Module
}

func (o *order) add(name string) error {
	if o.seen[name] || o.kernel.BuiltIn(name) {
		return nil
	}
	o.seen[name] = true
	image, err := o.kernel.Image(name)
	if err != nil {
		return err
	}
	if image == nil {
		if optional[name] {
			return nil
		}
		return fmt.Errorf("the kernel has no module %s", name)
	}
	needs, err := o.needs(image)
	if err != nil {
		return fmt.Errorf("module %s: %w", name, err)
	}
	for _, need := range needs {
		if err := o.add(need); err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
	}
	o.modules = append(o.modules, Module{Name: name, Image: image})
	return nil
}

// dependencies reads which modules one needs from the module itself, as depmod does: Debian's package comes without modules.dep.
func dependencies(image []byte) ([]string, error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo: this is no module")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	return named(info), nil
}

// named returns what the fields "depends" of a .modinfo say: name=value, each ended by a zero.
func named(info []byte) []string {
	var names []string
	for field := range strings.SplitSeq(string(info), "\x00") {
		list, _ := strings.CutPrefix(field, "depends=")
		if list == field || list == "" {
			continue
		}
		for name := range strings.SplitSeq(list, ",") {
			names = append(names, ModuleName(name))
		}
	}
	return names
}

// ModuleName is the name by which the kernel knows the module of a file: nf-tables.ko.xz is nf_tables.
func ModuleName(file string) string {
	name, _, _ := strings.Cut(file, ".")
	return strings.ReplaceAll(name, "-", "_")
}
