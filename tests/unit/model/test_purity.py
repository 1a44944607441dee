import subprocess
import sys
from pathlib import Path

import hybridjobs.model

MODULES = sorted(file.stem for file in Path(hybridjobs.model.__file__).parent.glob("*.py") if file.stem != "__init__")


def test_the_model_needs_neither_cdk_nor_an_aws_client() -> None:
    imports = "; ".join(f"import hybridjobs.model.{module}" for module in MODULES)
    program = f"import sys; {imports}; print(*sorted(name.partition('.')[0] for name in sys.modules))"

    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert not {"aws_cdk", "boto3", "botocore", "constructs", "stacks"} & set(completed.stdout.split())
