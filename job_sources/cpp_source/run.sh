#!/bin/sh
# Entry point of the job: becomes the program maxcut-cpp, which does all the rest itself.
if ! command -v maxcut-cpp > /dev/null; then
    echo "maxcut-cpp is not in this image: give the job image = 'asset:cpp', which holds it" >&2
    exit 127
fi
exec maxcut-cpp "$@"
