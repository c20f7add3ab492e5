package main

import (
	"fmt"
	"strings"
)

// flag is one option of the command line. It is a switch or takes a value.
type flag struct {
	long  string
	short byte   // 0: none
	value string // what it takes, as the help shows it; "": nothing, it is a switch
	help  string // "": not shown

	turn func(o *options, on bool)            // of a switch; --no-LONG turns it off
	set  func(o *options, value string) error // of one that takes a value
}

// usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// parse reads a command line as curl does: options and URLs in any order, short
// switches combined (-sSL), a short option's value attached or not (-XPUT, -X
// PUT), and everything after "--" a URL. A long option's value may also be
// attached by "=".
func parse(args []string) (*options, error) {
	if len(args) > 0 && args[0] == "demo" {
		return nil, usagef("demo stands alone; a host of that name is http://demo")
	}
	p := parser{options: defaultOptions(), rest: args}
	for len(p.rest) > 0 {
		arg := p.take()
		var err error
		switch {
		case arg == "--":
			p.options.urls = append(p.options.urls, p.rest...)
			p.rest = nil
		case strings.HasPrefix(arg, "--"):
			err = p.long(arg[2:])
		case strings.HasPrefix(arg, "-") && arg != "-":
			err = p.short(arg[1:])
		default:
			p.options.urls = append(p.options.urls, arg)
		}
		if err != nil {
			return nil, err
		}
	}
	return p.options, p.options.check()
}

type parser struct {
	options *options
	rest    []string
}

func (p *parser) take() string {
	arg := p.rest[0]
	p.rest = p.rest[1:]
	return arg
}

func (p *parser) long(arg string) error {
	name, value, attached := strings.Cut(arg, "=")
	shown := "--" + name
	f, on := findLong(name), true
	if f == nil {
		if positive, is := strings.CutPrefix(name, "no-"); is {
			f, on = findLong(positive), false
		}
		if f == nil || f.turn == nil {
			return usagef("option %s is unknown", shown)
		}
	}
	if f.turn != nil {
		if attached {
			return usagef("option %s takes no value", shown)
		}
		f.turn(p.options, on)
		return nil
	}
	if !attached {
		if len(p.rest) == 0 {
			return usagef("option %s needs a value: %s", shown, f.value)
		}
		value = p.take()
	}
	return p.apply(f, shown, value)
}

// short reads one or more short options: switches, the last of which may be one
// that takes a value.
func (p *parser) short(letters string) error {
	for len(letters) > 0 {
		shown := "-" + letters[:1]
		f := findShort(letters[0])
		letters = letters[1:]
		switch {
		case f == nil:
			return usagef("option %s is unknown", shown)
		case f.turn != nil:
			f.turn(p.options, true)
			continue
		case letters == "" && len(p.rest) == 0:
			return usagef("option %s needs a value: %s", shown, f.value)
		case letters == "":
			letters = p.take()
		}
		return p.apply(f, shown, letters)
	}
	return nil
}

func (p *parser) apply(f *flag, shown, value string) error {
	if err := f.set(p.options, value); err != nil {
		return usagef("option %s: %v", shown, err)
	}
	return nil
}

func findLong(name string) *flag {
	for i := range flags {
		if flags[i].long == name {
			return &flags[i]
		}
	}
	return nil
}

func findShort(letter byte) *flag {
	for i := range flags {
		if flags[i].short == letter {
			return &flags[i]
		}
	}
	return nil
}
