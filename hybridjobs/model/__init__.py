"""The project's data: jobs, stages, instances, prices and source archives, free of CDK and boto3."""
