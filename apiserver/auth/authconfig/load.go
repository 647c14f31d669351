package authconfig

import (
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/cel"
)

// parse reads the text of a file. Fields that nobody knows are errors.
func parse(text []byte) (*apiserver.AuthenticationConfiguration, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	obj, err := runtime.Decode(codecs.UniversalDecoder(), text)
	if err != nil {
		return nil, err
	}
	read, ok := obj.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("expected AuthenticationConfiguration, got %T", obj)
	}
	return read, nil
}

// validate refuses what upstream does, and issuers that are this cluster itself.
func validate(c *apiserver.AuthenticationConfiguration, ownIssuer string) error {
	return validation.ValidateAuthenticationConfiguration(cel.NewDefaultCompiler(), c, []string{ownIssuer}).ToAggregate()
}

// OIDC are the classic flags: one issuer, claims as they are.
type OIDC struct {
	IssuerURL, ClientID           string
	UsernameClaim, UsernamePrefix string
	GroupsClaim, GroupsPrefix     string
	CAFile                        string
	RequiredClaims                map[string]string
}

const (
	// DefaultUsernameClaim is the claim with the user's name if no other is configured.
	DefaultUsernameClaim = "sub"
	// emailClaim names users without a prefix: addresses are unique as they are.
	emailClaim = "email"
	// noPrefix as a prefix of users means that there is none.
	noPrefix = "-"
)

// configuration says the same in the words of a file.
func (o OIDC) configuration() (*apiserver.AuthenticationConfiguration, error) {
	issuer := apiserver.Issuer{URL: o.IssuerURL, Audiences: []string{o.ClientID}}
	if o.CAFile != "" {
		text, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, err
		}
		issuer.CertificateAuthority = string(text)
	}
	jwt := apiserver.JWTAuthenticator{Issuer: issuer}
	jwt.ClaimMappings.Username = apiserver.PrefixedClaimOrExpression{Claim: o.UsernameClaim, Prefix: new(o.usernamePrefix())}
	if o.GroupsClaim != "" {
		jwt.ClaimMappings.Groups = apiserver.PrefixedClaimOrExpression{Claim: o.GroupsClaim, Prefix: &o.GroupsPrefix}
	}
	for claim, value := range o.RequiredClaims {
		jwt.ClaimValidationRules = append(jwt.ClaimValidationRules, apiserver.ClaimValidationRule{Claim: claim, RequiredValue: value})
	}
	slices.SortFunc(jwt.ClaimValidationRules, byClaim)
	return &apiserver.AuthenticationConfiguration{JWT: []apiserver.JWTAuthenticator{jwt}}, nil
}

// usernamePrefix keeps users of an issuer apart from all others, as upstream does.
func (o OIDC) usernamePrefix() string {
	switch {
	case o.UsernamePrefix == noPrefix:
		return ""
	case o.UsernamePrefix == "" && o.UsernameClaim != emailClaim:
		return o.IssuerURL + "#"
	default:
		return o.UsernamePrefix
	}
}
