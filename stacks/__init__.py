"""The CDK side: three stacks of one stage, by lifetime (registry and storage are kept, jobs are disposable)."""
