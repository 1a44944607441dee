"""Makes, keeps and lets go of the launches that CloudFormation asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from dispatch.diagnosis import is_transient
from dispatch.dispatcher import dispatch
from errors import ConflictingWrite, LaunchError
from launch_job.decision import Action, decide
from launch_job.image import PrivateImage, private_image, stock_image
from launch_job.release import end_released, release, release_unanswered
from launch_job.request import channel_prefix, create_job_request, source_key, worst_case_usd
from launches import Identity, Launch, Released, State
from log_lines import log

if TYPE_CHECKING:
    from clock import Deadline
    from launch_job.event import Request, Wish
    from services import Services

_OVERTAKEN = "a Delete of this resource has overtaken its request, so the job was not started"
_OVERTAKEN_REMEDY = "Raise the stage's `run` and deploy again"
_JOB_NAME_LENGTH = 50
_WRITE_TRIES = 10


@dataclass(frozen=True)
class Answer:
    """What CloudFormation is told: the physical id, which is the job's name, and the launch's state."""

    job_name: str
    state: str


class Launcher:
    """Serves one event.

    Args:
        services: What it works with.
        deadline: By when it answers.
    """

    def __init__(self, services: Services, deadline: Deadline) -> None:
        self._services = services
        self._deadline = deadline

    def create(self, request: Request) -> Answer:
        """Launch the job that a new resource asks for."""
        return self._launch(request, request.wish())

    def update(self, request: Request) -> Answer:
        """Launch another job if the spec or the run has changed; otherwise keep the one that there is."""
        wish = request.wish()
        held = self._held(request)
        if held is None and request.physical_id != wish.identity.name():
            return self._launch(request, wish)
        if held is not None and held.identity != wish.identity:
            return self._launch(request, wish)
        # CloudFormation holds what it asks for. If it names another launch as the one before, that is the launch of
        # an Update that it never got an answer to: this is its rollback, and no Delete will follow.
        before = request.old_wish()
        if before is not None and before.identity != wish.identity:
            self._release_unanswered(before.identity, request)
        return Answer(request.physical_id or "", held.state if held else "UNKNOWN")

    def delete(self, request: Request) -> Answer:
        """Let the resource's launch go."""
        held = self._held(request)
        answer = Answer(request.physical_id or "", State.WITHDRAWN)
        if held is not None:
            release(
                self._services,
                held.name,
                why=Released.DELETED,
                request_id=request.request_id,
                deadline=self._deadline,
            )
            return answer
        try:
            identity = request.wish().identity
        except LaunchError as error:
            log("nothing to delete: neither the physical id nor the properties name a launch", error=str(error))
            return answer
        self._release_unanswered(identity, request)
        return answer

    def _held(self, request: Request) -> Launch | None:
        """Return the launch whose name CloudFormation holds as physical id, if it is this resource's."""
        name = request.physical_id
        if not name or len(name) > _JOB_NAME_LENGTH:
            return None
        held = self._services.ledger.get(name)
        if held is None:
            return None
        mine = (held.identity.stack_id, held.identity.logical_id) == (request.stack_id, request.logical_id)
        return held if mine else None

    def _release_unanswered(self, identity: Identity, request: Request) -> None:
        release_unanswered(self._services, identity, request_id=request.request_id, deadline=self._deadline)

    def _launch(self, request: Request, wish: Wish) -> Answer:
        for _ in range(_WRITE_TRIES):
            known = self._services.ledger.generations(wish.identity)
            found = known[-1] if known else None
            name = found.name if found else wish.identity.name()
            action = decide(
                found, known[:-1], request.request_id, creates=request.kind == "Create", now=self._services.clock.now()
            )
            log("decided", job_name=name, action=action.name, state=found.state if found else None)
            if found is not None and action is Action.NEXT_GENERATION:
                # Whoever let it go may not have lived to end its job.
                end_released(self._services, found, self._deadline)
                name, found = wish.identity.name(len(known)), None
            try:
                made_now = self._act(action, found, request, wish, name)
            except ConflictingWrite:
                continue
            return self._settled(name, request, made_now=made_now)
        raise LaunchError(f"the launch of {wish.identity.job} changes too fast", remedy="Deploy again")

    def _act(self, action: Action, found: Launch | None, request: Request, wish: Wish, name: str) -> bool:
        """Carry a decision out; returns whether a launch was made."""
        if found is None or action in {Action.LAUNCH, Action.LAUNCH_AGAIN}:
            self._make(found, request, wish, name)
            return True
        if action is Action.REFUSE:
            raise LaunchError(_OVERTAKEN, remedy=_OVERTAKEN_REMEDY)
        known = found.request_ids | {request.request_id}
        if known != found.request_ids or found.released is not Released.NO:
            self._services.ledger.replace(replace(found, released=Released.NO, request_ids=known))
        return False

    def _make(self, found: Launch | None, request: Request, wish: Wish, name: str) -> None:
        now = self._services.now()
        launch = Launch(
            name=name,
            state=State.PENDING,
            identity=wish.identity,
            requested_at=now,
            updated_at=now,
            spec=wish.spec,
            price=wish.price,
            request_ids=(found.request_ids if found else frozenset()) | {request.request_id},
            open_since=now,
            revision=found.revision if found else 0,
        )
        try:
            image_uri = self._prepare(wish)
            job = create_job_request(
                launch, request_id=request.request_id, image_uri=image_uri, settings=self._services.settings
            )
        except Exception as error:
            self._note_failure(launch, error)
            raise
        self._write(replace(launch, request=job))

    def _prepare(self, wish: Wish) -> str:
        """Put the job's files into the bucket; returns the image's address."""
        wish.require_complete()
        self._guard_spending(wish)
        artifacts = self._services.artifacts
        sha256 = wish.spec["source"]["sha256"]
        artifacts.copy(wish.source_archive, source_key(sha256), sha256)
        for channel, files in sorted(wish.spec["inputs"].items()):
            prefix = channel_prefix(files)
            for file in files:
                source = wish.input_files.get(f"{channel}/{file['path']}")
                if source is None:
                    raise LaunchError(
                        f"InputFiles has no {channel}/{file['path']}",
                        remedy="Deploy with the version of this project that synthesized the stack",
                    )
                artifacts.copy(source, prefix + file["path"], file["sha256"])
        return self._image(wish)

    def _guard_spending(self, wish: Wish) -> None:
        """Refuse what the synthesis would have refused: a template may have been changed since, or be an old one."""
        settings = self._services.settings
        if settings.max_spend_usd is None:
            return
        worst = worst_case_usd(wish.spec, wish.price)
        if worst is None and not settings.allow_unknown_price:
            unknown = (
                f"its instance type {wish.spec['instance']['type']} has no price"
                if wish.price is None
                else f"its device {wish.spec['device']} bills its tasks on top"
            )
            raise LaunchError(
                f"nobody knows what {wish.identity.job} may cost: {unknown}",
                remedy="Use an instance of known price, or write allow_unknown_price = true in the stage",
            )
        if worst is not None and worst > settings.max_spend_usd:
            raise LaunchError(
                f"{wish.identity.job} may cost {worst:.2f} USD, the stage allows {settings.max_spend_usd:.2f}",
                remedy="Lower the job's max_runtime_seconds or raise the stage's max_spend_usd",
            )

    def _image(self, wish: Wish) -> str:
        settings = self._services.settings
        stock = stock_image(wish.spec["image"], settings.region)
        if stock is not None:
            return stock
        uri = wish.image_uri or str(wish.spec["image"])
        image = private_image(uri)
        if image is None:
            return uri
        if image.region != settings.region:
            raise LaunchError(
                f"image {uri} is in {image.region}, and the job runs in {settings.region}, where it can't be pulled",
                remedy="Push the image to this region with `hybridjobs image push`, and name what that prints",
            )
        if image.is_stock:
            return uri
        if image.account != settings.account:
            _refuse_foreign_tag(image, uri, settings.account)
            return uri
        return image.at(
            self._services.images.digest(image.repository, image.reference, wish.spec["instance"]["volume_gb"])
        )

    def _write(self, launch: Launch) -> None:
        if launch.revision:
            self._services.ledger.replace(launch)
        else:
            self._services.ledger.create(launch)

    def _note_failure(self, launch: Launch, error: Exception) -> None:
        """Leave word that this request has failed, so that its rollback needs no tombstone."""
        noted = replace(launch, released=Released.FAILED).moved(State.REJECTED, launch.updated_at, reason=str(error))
        try:
            self._write(noted)
        except (ConflictingWrite, ClientError, BotoCoreError) as failure:
            log("the failed launch could not be noted", job_name=launch.name, error=str(failure))

    def _settled(self, name: str, request: Request, *, made_now: bool) -> Answer:
        """Have the launch started if there is a place for it, and answer with what became of it.

        What this event has made is taken back if the answer is a failure. What it found stays as it is: CloudFormation
        may hold it.
        """
        try:
            launch = self._started(name, request, made_now=made_now)
        except Exception as error:
            if made_now:
                self._take_back(name, request, error)
            raise
        return Answer(name, launch.state)

    def _started(self, name: str, request: Request, *, made_now: bool) -> Launch:
        launch = self._services.ledger.get(name)
        if launch is not None and launch.state in {State.PENDING, State.STARTING}:
            self._dispatch(made_now=made_now)
            launch = self._services.ledger.get(name)
        if launch is None:
            raise LaunchError(f"{name} is gone from the launch ledger", remedy="Deploy again")
        if launch.released is Released.DELETED:
            raise LaunchError(_OVERTAKEN, remedy=_OVERTAKEN_REMEDY)
        if launch.state is State.REJECTED and launch.made_by(request.request_id):
            raise LaunchError(launch.reason or "Braket refuses the job", remedy="Then deploy again")
        return launch

    def _dispatch(self, *, made_now: bool) -> None:
        try:
            dispatch(self._services, self._deadline)
        except (ClientError, BotoCoreError) as error:
            if made_now and not is_transient(error):
                raise
            log("the launch waits: the dispatcher was interrupted", error=str(error))

    def _take_back(self, name: str, request: Request, error: Exception) -> None:
        try:
            release(
                self._services,
                name,
                why=Released.FAILED,
                request_id=request.request_id,
                deadline=self._deadline,
                reason=str(error),
            )
        except (LaunchError, ClientError, BotoCoreError) as failure:
            log("a failed launch could not be taken back; the sweep looks for it", job_name=name, error=str(failure))


def _refuse_foreign_tag(image: PrivateImage, uri: str, account: str) -> None:
    # Only the job role is sure to be let into another account's repository, so nobody can resolve the tag here.
    if not image.is_certain:
        raise LaunchError(
            f"image {uri} is named by a tag of account {image.account}, which may stand for another image at any "
            f"time, and the launcher of account {account} can't look it up",
            remedy="Name it by its digest (@sha256:...), or push it into the stage's repository with `hybridjobs image "
            "push` and name what that prints",
        )
