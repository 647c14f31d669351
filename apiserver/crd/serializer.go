package crd

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
)

// negotiated speaks custom resources in JSON and YAML. Protobuf is for what is said
// about them: options, tables, metadata.
type negotiated struct {
	definition *definition
	scheme     *runtime.Scheme
	media      []runtime.SerializerInfo
}

var _ runtime.NegotiatedSerializer = negotiated{}

func newSerializer(d *definition, typer runtime.ObjectTyper) negotiated {
	asJSON := func(options json.SerializerOptions) runtime.Serializer {
		return json.NewSerializerWithOptions(json.DefaultMetaFactory, creater{}, typer, options)
	}
	return negotiated{definition: d, scheme: d.catalog.scheme, media: []runtime.SerializerInfo{
		{
			MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
			Serializer:       asJSON(json.SerializerOptions{StreamingCollectionsEncoding: true}),
			PrettySerializer: asJSON(json.SerializerOptions{Pretty: true}),
			StrictSerializer: asJSON(json.SerializerOptions{Strict: true, StreamingCollectionsEncoding: true}),
			StreamSerializer: &runtime.StreamSerializerInfo{
				EncodesAsText: true, Serializer: asJSON(json.SerializerOptions{}), Framer: json.Framer,
			},
		},
		{
			MediaType: runtime.ContentTypeYAML, MediaTypeType: "application", MediaTypeSubType: "yaml", EncodesAsText: true,
			Serializer:       asJSON(json.SerializerOptions{Yaml: true}),
			StrictSerializer: asJSON(json.SerializerOptions{Yaml: true, Strict: true}),
		},
		{
			MediaType: runtime.ContentTypeProtobuf, MediaTypeType: "application", MediaTypeSubType: "vnd.kubernetes.protobuf",
			Serializer: protobuf.NewSerializerWithOptions(
				creater{},
				typer,
				protobuf.SerializerOptions{StreamingCollectionsEncoding: true},
			),
			StrictSerializer: protobuf.NewSerializer(creater{}, typer), // refuses custom resources, as the other does
			StreamSerializer: &runtime.StreamSerializerInfo{
				Serializer: protobuf.NewRawSerializer(creater{}, typer), Framer: protobuf.LengthDelimitedFramer,
			},
		},
	}}
}

// newScheme knows what is sent beside custom resources, whatever their group: to it
// these types have no version.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	gv := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, gv)
	scheme.AddUnversionedTypes(gv, &metav1.Status{}, &metav1.WatchEvent{})
	return scheme
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo { return n.media }

// EncoderForVersion implements runtime.NegotiatedSerializer.
func (n negotiated) EncoderForVersion(encoder runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	return versioning.NewCodec(encoder, nil, convertor{n.definition}, n.scheme, n.scheme, n.scheme, gv, nil, "custom resources")
}

// DecoderToVersion implements runtime.NegotiatedSerializer. A strict decoder reports
// fields that the schema does not know, too.
func (n negotiated) DecoderToVersion(decoder runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	strict, ok := decoder.(*json.Serializer)
	coercing := coercingDecoder{decoder, coercer{definition: n.definition, report: ok && strict.IsStrict()}}
	return versioning.NewCodec(nil, coercing, runtime.UnsafeObjectConvertor(n.scheme), n.scheme, n.scheme,
		n.definition.defaulter(), nil, gv, "custom resources")
}

func (d *definition) defaulter() defaulter { return defaulter{d.catalog.scheme, d} }

// convertor converts lists on their way out. All items have the right version then:
// the table has converted them.
type convertor struct{ *definition }

func (c convertor) Convert(in, out, context any) error {
	real, err := c.definition.converter()
	if err != nil {
		return err
	}
	return real.safe.Convert(in, out, context)
}

func (c convertor) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	real, err := c.definition.converter()
	if err != nil {
		return nil, err
	}
	return real.safe.ConvertToVersion(in, gv)
}

func (c convertor) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	real, err := c.definition.converter()
	if err != nil {
		return "", "", err
	}
	return real.safe.ConvertFieldLabel(gvk, label, value)
}

// creater makes objects without a Go type, whatever the kind.
type creater struct{}

func (creater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// objectTyper knows objects without a Go type by what they say, all others by the scheme.
type objectTyper struct {
	typed, untyped runtime.ObjectTyper
}

func (t objectTyper) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	if _, untyped := obj.(runtime.Unstructured); untyped {
		return t.untyped.ObjectKinds(obj)
	}
	return t.typed.ObjectKinds(obj)
}

func (t objectTyper) Recognizes(gvk schema.GroupVersionKind) bool {
	return t.typed.Recognizes(gvk) || t.untyped.Recognizes(gvk)
}
