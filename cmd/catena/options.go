package main

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/proxy"
)

// options is what a command line asks for.
type options struct {
	urls []string

	// The request.
	method    string // "": what the body asks for
	data      []data
	asQuery   bool
	upload    string // a file's name, "-" is standard input; "": none
	headers   []field
	userAgent *string // nil: the library's
	referer   string
	user      string
	schemes   schemes // by which user, and whom else there is, may be named
	head      bool

	netrc         bool
	netrcOptional bool
	netrcFile     string

	// The output.
	outputs    []output // the first is the first URL's, and so on
	include    bool
	fail       bool
	compressed bool
	silent     bool
	showError  bool
	verbose    bool
	trace      bool

	// The way there. What is nil is the library's default.
	follow         bool
	maxRedirects   *int
	retryPolicy    chain.RetryPolicy
	connectTimeout *time.Duration
	readTimeout    *time.Duration
	writeTimeout   *time.Duration
	callTimeout    *time.Duration
	protocols      []string
	insecure       bool
	caFile         string
	resolve        overrides

	// The proxies.
	proxy         *proxy.Proxy // nil: the environment's
	proxyUser     *url.Userinfo
	proxySchemes  schemes
	proxyHeaders  []field
	proxyInsecure bool
	proxyCAFile   string
	noProxy       *string // nil: the environment's

	help, version bool
}

func defaultOptions() *options { return &options{follow: true} }

// data is one -d or its kin.
type data struct {
	text  string
	file  bool // text is the name of a file, "-" is standard input
	plain bool // line ends and NUL bytes of a file are left out
}

// output is where one response goes.
type output struct {
	name   string // "-" is standard output
	remote bool   // a file named as the URL says
}

// field is one -H.
type field struct {
	name, value string
	without     bool // leave the field out
}

func (o *options) addData(v string, plain bool) error {
	name, file := strings.CutPrefix(v, "@")
	if file && name == "" {
		return errors.New("no file is named after @")
	}
	o.data = append(o.data, data{text: name, file: file, plain: file && plain})
	return nil
}

// addField adds to list what v says: "Name: value", "Name:" or "Name;". The value is
// not shown in errors: it may be a secret.
func addField(list *[]field, v string) error {
	name, value, colon := strings.Cut(v, ":")
	value = strings.Trim(value, " \t")
	f := field{name: name, value: value, without: value == ""}
	if !colon {
		semicolon := false
		f.name, semicolon = strings.CutSuffix(v, ";")
		f.without = false
		if !semicolon {
			return errors.New(`want "Name: value", "Name:" or "Name;"`)
		}
	}
	switch {
	case !httpguts.ValidHeaderFieldName(f.name):
		return errors.New("the field's name is empty or has a character that names don't have")
	case !httpguts.ValidHeaderFieldValue(f.value):
		return errors.New("the field's value has a character that values don't have")
	}
	*list = append(*list, f)
	return nil
}

// seconds reads a time as curl does, in seconds, or with a unit. 0 is none.
func seconds(v string) (*time.Duration, error) {
	d, err := time.ParseDuration(v)
	if n, numberErr := strconv.ParseFloat(v, 64); numberErr == nil && math.Abs(n) < math.MaxInt32 {
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return nil, fmt.Errorf("%q is no time in seconds, such as 2.5, or with a unit, such as 300ms", v)
	}
	return &d, nil
}

// check finds options that make no sense together.
func (o *options) check() error {
	body := len(o.data) > 0 && !o.asQuery
	switch {
	case o.help || o.version:
		return nil
	case len(o.urls) == 0:
		return usagef("no URL is given")
	case o.upload != "" && body:
		return usagef("options -d and -T exclude each other: a request has one body")
	case o.head && (body || o.upload != ""):
		return usagef("option -I excludes a body")
	case len(o.outputs) > len(o.urls):
		return usagef("there are more outputs than URLs: %d and %d", len(o.outputs), len(o.urls))
	}
	if o.proxy != nil && !o.proxy.IsDirect() && o.proxyUser != nil {
		p := *o.proxy
		p.User = o.proxyUser
		if err := p.Validate(); err != nil {
			return usagef("option -U: %v", err)
		}
	}
	return nil
}
