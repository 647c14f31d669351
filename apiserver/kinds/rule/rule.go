package rule

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var portProtocols = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}

// Required asks for a value.
func Required(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// Invalid reports each problem that a check of Kubernetes' libraries found in a value.
func Invalid(value any, problems []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}

// Label judges names that become part of a host name.
func Label(name string, path *field.Path) field.ErrorList {
	return Invalid(name, utilvalidation.IsDNS1123Label(name), path)
}

// Port asks for a number from 1 to 65535.
func Port(port int32, path *field.Path) field.ErrorList {
	return Invalid(port, utilvalidation.IsValidPortNum(int(port)), path)
}

// Protocol asks for one of the transport protocols.
func Protocol(protocol corev1.Protocol, path *field.Path) field.ErrorList {
	if protocol == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return OneOf(protocol, portProtocols, path)
}

// OneOf reports a value outside a set.
func OneOf[T ~string](value T, set []T, path *field.Path) field.ErrorList {
	if slices.Contains(set, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, set)}
}

// PortOrName asks for the number of a port or the name of a container's port.
func PortOrName(port intstr.IntOrString, path *field.Path) field.ErrorList {
	if port.Type == intstr.Int {
		return Port(port.IntVal, path)
	}
	return Invalid(port.StrVal, utilvalidation.IsValidPortName(port.StrVal), path)
}

// IP asks for an address in canonical form.
func IP(ip string, path *field.Path) field.ErrorList {
	return utilvalidation.IsValidIP(path, ip)
}

// LegacyIP asks for an address in any form but with leading zeros, or IPv4 as IPv6: for fields that had no such rule at first, and name
// nothing that another object could name too.
func LegacyIP(ip string, path *field.Path) field.ErrorList {
	return utilvalidation.IsValidIPForLegacyField(path, ip, true, nil)
}

// NonSpecialIP refuses addresses that mean "here" or "nowhere".
func NonSpecialIP(text string, path *field.Path) field.ErrorList {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return field.ErrorList{field.Invalid(path, text, "must be a valid IP address")}
	}
	var errs field.ErrorList
	for _, special := range []struct {
		is  bool
		msg string
	}{
		{ip.IsUnspecified(), fmt.Sprintf("may not be unspecified (%v)", text)},
		{ip.IsLoopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"},
		{ip.IsLinkLocalUnicast(), "may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
		{ip.IsLinkLocalMulticast(), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"},
	} {
		if special.is {
			errs = append(errs, field.Invalid(path, text, special.msg))
		}
	}
	return errs
}

// Subdomain asks for the name of most objects: an RFC 1123 subdomain.
func Subdomain(name string, path *field.Path) field.ErrorList {
	return Invalid(name, utilvalidation.IsDNS1123Subdomain(name), path)
}

// driverNameMax is what the socket of a driver leaves of a path's length.
const driverNameMax = 63

// DriverName asks for the name of a driver of volumes or devices; upper case is
// allowed where it once was.
func DriverName(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(name) > driverNameMax {
		errs = append(errs, field.TooLong(path, "", driverNameMax))
	}
	return append(errs, Invalid(name, utilvalidation.IsDNS1123Subdomain(strings.ToLower(name)), path)...)
}

// DataKey asks for a key that can become a file name.
func DataKey(key string, path *field.Path) field.ErrorList {
	return Invalid(key, utilvalidation.IsConfigMapKey(key), path)
}

// RequiredOneOf is OneOf with a message of its own for an empty value.
func RequiredOneOf[T ~string](value T, set []T, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return OneOf(value, set, path)
}

// Nonnegative appends an error to errs if value is below 0.
func Nonnegative(errs *field.ErrorList, value int32, path *field.Path) {
	*errs = append(*errs, validation.ValidateNonnegativeField(int64(value), path)...)
}

// BasicQuantity refuses an amount of less than nothing.
func BasicQuantity(amount resource.Quantity, path *field.Path) field.ErrorList {
	if amount.Value() < 0 {
		return field.ErrorList{field.Invalid(path, amount.Value(), "must be a valid resource quantity")}
	}
	return nil
}

// Positive asks for an amount above 0.
func Positive(amount resource.Quantity, path *field.Path) field.ErrorList {
	if amount.Sign() > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, amount.String(), "must be greater than zero")}
}

// NonnegativePointer is Nonnegative for a value that may be unset.
func NonnegativePointer(errs *field.ErrorList, value *int32, path *field.Path) {
	if value != nil {
		Nonnegative(errs, *value, path)
	}
}

// AtMost appends an error to errs if value is above that of another field.
func AtMost(errs *field.ErrorList, value, limit int32, limitName string, path *field.Path) {
	if value > limit {
		*errs = append(*errs, field.Invalid(path, value, "cannot be greater than "+limitName))
	}
}

// Immutable refuses a change of a field that upstream judges by a marker on its
// type: that message shows no value. validation.ValidateImmutableField is for the others.
func Immutable(value, old any, path *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, nil, validation.FieldImmutableErrorMsg)}
}

// PathSegment asks for a name that can be a part of a path in URLs.
func PathSegment(name string, path *field.Path) field.ErrorList {
	return Invalid(name, content.IsPathSegmentName(name), path)
}

// QualifiedName asks for a name with perhaps a domain before it.
func QualifiedName(name string, path *field.Path) field.ErrorList {
	return Invalid(name, utilvalidation.IsQualifiedName(name), path)
}

// OptionalOneOf judges an optional member of a set.
func OptionalOneOf[T ~string](value *T, set []T, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return OneOf(*value, set, path)
}

// OnlyFields refuses set fields of a struct that are not among the allowed ones, by
// their Go names.
func OnlyFields(value any, allowed sets.Set[string], why string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	v := reflect.ValueOf(value)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !allowed.Has(name) && !v.Field(i).IsZero() {
			errs = append(errs, field.Forbidden(path.Child(strings.ToLower(name[:1])+name[1:]), why))
		}
	}
	return errs
}

// IsTrue reads an optional flag that is off when unset.
func IsTrue(b *bool) bool { return b != nil && *b }

// RoundUp removes precision below a thousandth, which the API does not keep.
func RoundUp(list corev1.ResourceList) {
	const milli = -3
	for name, quantity := range list {
		quantity.RoundUp(milli)
		list[name] = quantity
	}
}

// Default sets a field that has its zero value.
func Default[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// DefaultPointer sets a pointer field that is nil.
func DefaultPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
