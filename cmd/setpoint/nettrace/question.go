package nettrace

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Errors of questions.
var (
	ErrFrom = errors.New("FROM is a pod: NAME or NAMESPACE/NAME")
	ErrTo   = errors.New("TO is pod/NAME, service/NAME, a DNS name or an address ([ADDRESS] of IPv6 before a port), and :PORT or :PORT/udp if need be")
)

// Kinds of targets.
const (
	toPod     = "pod"
	toService = "service"
	toName    = "name"
	toAddress = "address"
)

// Question is what is traced.
type Question struct {
	From types.NamespacedName
	To   Target
}

// Target is where a packet is to go. Port 0 is the only one that the target has.
type Target struct {
	Kind     string
	Object   types.NamespacedName
	Name     string
	Address  netip.Addr
	Port     uint16
	Protocol corev1.Protocol
}

// String is the target as it was asked for.
func (t Target) String() string {
	text := t.Name
	switch t.Kind {
	case toPod, toService:
		text = t.Kind + "/" + t.Object.Name
	case toAddress:
		if text = t.Address.String(); t.Address.Is6() && t.Port != 0 {
			text = "[" + text + "]"
		}
	}
	if t.Port != 0 {
		text += ":" + strconv.Itoa(int(t.Port))
	}
	if t.Protocol != corev1.ProtocolTCP {
		text += "/" + strings.ToLower(string(t.Protocol))
	}
	return text
}

// Parse reads the arguments. namespace is that of names without one.
func Parse(namespace, from, to string) (Question, error) {
	pod, ok := objectName(namespace, strings.TrimPrefix(from, "pod/"))
	if !ok {
		return Question{}, fmt.Errorf("%w: %q", ErrFrom, from)
	}
	target, ok := parseTarget(namespace, to)
	if !ok {
		return Question{}, fmt.Errorf("%w: %q", ErrTo, to)
	}
	return Question{pod, target}, nil
}

func objectName(namespace, text string) (types.NamespacedName, bool) {
	if before, after, found := strings.Cut(text, "/"); found {
		namespace, text = before, after
	}
	return types.NamespacedName{Namespace: namespace, Name: text}, namespace != "" && text != "" && !strings.Contains(text, "/")
}

// kindsOf are the words for pods and Services, as kubectl has them.
var kindsOf = map[string]string{
	"pod": toPod, "pods": toPod, "po": toPod, "service": toService, "services": toService, "svc": toService,
}

func parseTarget(namespace, text string) (t Target, ok bool) {
	t.Protocol = corev1.ProtocolTCP
	if address, err := netip.ParseAddr(text); err == nil { // of IPv6 it has colons
		t.Kind, t.Address = toAddress, address.Unmap()
		return t, address.Zone() == ""
	}
	text, ok = t.cutPort(text)
	if !ok || text == "" {
		return t, false
	}
	if word, rest, found := strings.Cut(text, "/"); found {
		t.Kind = kindsOf[word]
		t.Object, ok = objectName(namespace, rest)
		return t, ok && t.Kind != ""
	}
	if address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")); err == nil {
		t.Kind, t.Address = toAddress, address.Unmap()
		return t, address.Zone() == "" && address.Is6() == strings.HasPrefix(text, "[")
	}
	t.Kind, t.Name = toName, text
	return t, !strings.ContainsAny(text, ":[]")
}

// cutPort takes :PORT or :PORT/PROTOCOL off the end.
func (t *Target) cutPort(text string) (rest string, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 || strings.HasSuffix(text, "]") {
		return text, true
	}
	number, protocol, named := strings.Cut(text[i+1:], "/")
	port, err := strconv.ParseUint(number, 10, 16)
	if named {
		t.Protocol = corev1.Protocol(strings.ToUpper(protocol))
	}
	t.Port = uint16(port)
	known := t.Protocol == corev1.ProtocolTCP || t.Protocol == corev1.ProtocolUDP || t.Protocol == corev1.ProtocolSCTP
	return text[:i], err == nil && port != 0 && known
}
