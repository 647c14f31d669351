package discovery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Limits of one slice. Larger sets are split by the controller.
const (
	sliceEndpointsMax = 1000
	sliceAddressesMax = 100
	slicePortsMax     = 20000
	// sliceCellMax is how many ports or addresses a table cell names.
	sliceCellMax = 3
)

func endpointSlices() resource.Kind[*discoveryv1.EndpointSlice] {
	return resource.Kind[*discoveryv1.EndpointSlice]{
		GroupVersionKind: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
		Plural:           "endpointslices",
		New:              func() *discoveryv1.EndpointSlice { return &discoveryv1.EndpointSlice{} },
		NewList:          func() runtime.Object { return &discoveryv1.EndpointSliceList{} },
		Default:          defaultEndpointSlice,
		PrepareCreate:    func(slice *discoveryv1.EndpointSlice) { slice.Generation = 1 },
		PrepareUpdate:    prepareEndpointSliceUpdate,
		Validate:         validateEndpointSlice,
		ValidateUpdate:   validateEndpointSliceUpdate,
		ChangeWarnings:   sliceWarnings,
		Columns:          endpointSliceColumns(),
	}
}

func sliceWarnings(slice, old *discoveryv1.EndpointSlice) []string {
	if old != nil || slice.AddressType != discoveryv1.AddressTypeFQDN {
		return nil
	}
	return []string{"spec.addressType: FQDN endpoints are deprecated"} // as upstream, though there is no spec
}

func defaultEndpointSlice(slice *discoveryv1.EndpointSlice) {
	for i := range slice.Ports {
		rule.DefaultPointer(&slice.Ports[i].Name, "")
		rule.DefaultPointer(&slice.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}

// prepareEndpointSliceUpdate counts changes itself: a slice has no spec, and its
// labels say which Service it belongs to.
func prepareEndpointSliceUpdate(slice, old *discoveryv1.EndpointSlice) {
	same := equality.Semantic.DeepEqual(slice.Endpoints, old.Endpoints) &&
		equality.Semantic.DeepEqual(slice.Ports, old.Ports) &&
		slice.AddressType == old.AddressType &&
		equality.Semantic.DeepEqual(slice.Labels, old.Labels)
	if !same {
		slice.Generation = old.Generation + 1
	}
}

func endpointSliceColumns() []resource.Column[*discoveryv1.EndpointSlice] {
	doc := discoveryv1.EndpointSlice{}.SwaggerDoc()
	return []resource.Column[*discoveryv1.EndpointSlice]{
		column.Name[*discoveryv1.EndpointSlice](),
		column.Text(
			"AddressType",
			doc["addressType"],
			0,
			func(slice *discoveryv1.EndpointSlice) string { return string(slice.AddressType) },
		),
		column.Text("Ports", doc["ports"], 0, slicePortsCell),
		column.Text("Endpoints", doc["endpoints"], 0, sliceEndpointsCell),
		column.Age[*discoveryv1.EndpointSlice](),
	}
}

func slicePortsCell(slice *discoveryv1.EndpointSlice) string {
	var ports []string
	for _, p := range slice.Ports {
		text := "*"
		if p.Port != nil {
			text = strconv.Itoa(int(*p.Port))
		}
		ports = append(ports, text)
	}
	return firstFew(ports)
}

func sliceEndpointsCell(slice *discoveryv1.EndpointSlice) string {
	var addresses []string
	for _, endpoint := range slice.Endpoints {
		addresses = append(addresses, endpoint.Addresses...)
	}
	return firstFew(addresses)
}

func firstFew(list []string) string {
	if len(list) == 0 {
		return "<unset>"
	}
	if len(list) <= sliceCellMax {
		return strings.Join(list, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(list[:sliceCellMax], ","), len(list)-sliceCellMax)
}

func validateEndpointSlice(slice *discoveryv1.EndpointSlice) field.ErrorList {
	errs := validateAddressType(slice.AddressType)
	errs = append(errs, validateEndpoints(slice.Endpoints, slice.AddressType, field.NewPath("endpoints"))...)
	return append(errs, validateEndpointPorts(slice.Ports, field.NewPath("ports"))...)
}

func validateAddressType(kind discoveryv1.AddressType) field.ErrorList {
	path := field.NewPath("addressType")
	if kind == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return rule.OneOf(
		kind,
		[]discoveryv1.AddressType{discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6},
		path,
	)
}

func validateEndpoints(endpoints []discoveryv1.Endpoint, kind discoveryv1.AddressType, path *field.Path) field.ErrorList {
	if len(endpoints) > sliceEndpointsMax {
		return field.ErrorList{field.TooMany(path, len(endpoints), sliceEndpointsMax)}
	}
	var errs field.ErrorList
	for i := range endpoints {
		endpoint, at := &endpoints[i], path.Index(i)
		addresses := at.Child("addresses")
		switch n := len(endpoint.Addresses); {
		case n == 0:
			errs = append(errs, field.Required(addresses, ""))
		case n > sliceAddressesMax:
			errs = append(errs, field.TooMany(addresses, n, sliceAddressesMax))
		}
		for j, address := range endpoint.Addresses {
			errs = append(errs, validateEndpointAddress(address, kind, addresses.Index(j))...)
		}
		if endpoint.Hostname != nil {
			errs = append(errs, rule.Label(*endpoint.Hostname, at.Child("hostname"))...)
		}
		if endpoint.NodeName != nil {
			errs = append(errs, rule.Subdomain(*endpoint.NodeName, at.Child("nodeName"))...)
		}
		if endpoint.Hints != nil {
			errs = append(errs, validateHints(endpoint.Hints, at.Child("hints"))...)
		}
	}
	return errs
}

// hintsMax bounds the zones and the nodes that an endpoint is meant for.
const hintsMax = 8

func validateHints(hints *discoveryv1.EndpointHints, path *field.Path) field.ErrorList {
	zones, nodes := make([]string, len(hints.ForZones)), make([]string, len(hints.ForNodes))
	for i, zone := range hints.ForZones {
		zones[i] = zone.Name
	}
	for i, node := range hints.ForNodes {
		nodes[i] = node.Name
	}
	if len(zones) > hintsMax {
		return field.ErrorList{field.TooMany(path.Child("forZones"), len(zones), hintsMax)}
	}
	errs := validateHintNames(zones, utilvalidation.IsValidLabelValue, path.Child("forZones"))
	if len(nodes) > hintsMax {
		return append(errs, field.TooMany(path.Child("forNodes"), len(nodes), hintsMax))
	}
	return append(errs, validateHintNames(nodes, utilvalidation.IsDNS1123Subdomain, path.Child("forNodes"))...)
}

func validateHintNames(names []string, problems func(string) []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		at := path.Index(i).Child("name")
		if slices.Contains(names[:i], name) {
			errs = append(errs, field.Duplicate(at, name))
		}
		errs = append(errs, rule.Invalid(name, problems(name), at)...)
	}
	return errs
}

func validateEndpointAddress(address string, kind discoveryv1.AddressType, path *field.Path) field.ErrorList {
	switch kind {
	case discoveryv1.AddressTypeFQDN:
		return utilvalidation.IsFullyQualifiedDomainName(path, address)
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
		if bad := rule.IP(address, path); len(bad) > 0 {
			return bad
		}
		if is6 := strings.Contains(address, ":"); is6 != (kind == discoveryv1.AddressTypeIPv6) {
			return field.ErrorList{field.Invalid(path, address, fmt.Sprintf("must be an %s address", kind))}
		}
		return rule.NonSpecialIP(address, path)
	}
	return nil
}

func validateEndpointPorts(ports []discoveryv1.EndpointPort, path *field.Path) field.ErrorList {
	if len(ports) > slicePortsMax {
		return field.ErrorList{field.TooMany(path, len(ports), slicePortsMax)}
	}
	var errs field.ErrorList
	names := map[string]bool{}
	for i, p := range ports {
		at, name := path.Index(i), ptr.Deref(p.Name, "")
		if name != "" {
			errs = append(errs, rule.Label(name, at.Child("name"))...)
		}
		if names[name] {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names[name] = true
		errs = append(errs, rule.Protocol(ptr.Deref(p.Protocol, ""), at.Child("protocol"))...)
		if p.AppProtocol != nil {
			errs = append(errs, rule.QualifiedName(*p.AppProtocol, at.Child("appProtocol"))...)
		}
	}
	return errs
}

func validateEndpointSliceUpdate(slice, old *discoveryv1.EndpointSlice) field.ErrorList {
	errs := validateEndpointSlice(slice)
	return append(errs, validation.ValidateImmutableField(slice.AddressType, old.AddressType, field.NewPath("addressType"))...)
}
