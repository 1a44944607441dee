"""Max-Cut QAOA by the C++ engine of the image asset:cpp, as an Amazon Braket hybrid job."""
