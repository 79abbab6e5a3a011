"""Webhooks as their owners see them: set, shown, listed, deleted, and brought along with a message.

What is sent to them and when is the store's affair and the sender's. Nothing here ever shows a secret.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from dragoman.core import cursors
from dragoman.core.registration import judge
from dragoman.engine.limits import Limits
from dragoman.model.errors import Busy, Conflict, InvalidParams, PushNotSupported, TaskNotFound, Violation
from dragoman.model.operations import Call, CreatePush, DeletePush, GetPush, ListPush, Policy, PushConfig, PushPage
from dragoman.model.tasks import Head, Scope
from dragoman.ports import Hook, Hooks, Ids, Screen, Store

INLINE = "configuration.taskPushNotificationConfig."


class Hooking:
    """Without a store for hooks, or without somebody who screens their addresses, there are none."""

    def __init__(self, store: Store, hooks: Hooks | None, screen: Screen | None, ids: Ids, limits: Limits) -> None:
        self._store = store
        self._kept = hooks
        self._screen = screen
        self._ids = ids
        self._most = limits.hooks
        self._most_each = limits.hooks_per_caller
        self._coming: Counter[str] = Counter()  # by task: judged, and on their way into the store

    # --- operations

    async def create(self, call: Call, op: CreatePush) -> PushConfig:
        head = await self._head(call.scope, op.config.task_id)
        await self._admit(op.config, "")
        hook = self._hook(call, op.config, head.uid, head.id, call.policy.of(head.origin))
        self._coming[head.uid] += 1
        try:
            await self._room(hook, self._coming[head.uid])
            kept = await self._hooks.keep_hook(hook)
        except Conflict:
            raise TaskNotFound(op.config.task_id) from None
        finally:
            self._coming[head.uid] -= 1
            self._coming += Counter()  # forgets the zeros
        return _shown(kept)

    async def get(self, call: Call, op: GetPush) -> PushConfig | None:
        head = await self._head(call.scope, op.task_id)
        policy = call.policy.of(head.origin)
        hook = await self._meant(call.scope, head, op.id, policy)
        if hook is not None:
            return _shown(hook)
        if policy.missing_hook == "none":
            return None
        raise TaskNotFound(op.task_id).about(head.origin)

    async def list(self, call: Call, op: ListPush) -> PushPage:
        """The task's webhooks, or all of the caller's where a dialect lists without naming a task."""
        head = await self._head(call.scope, op.task_id) if op.task_id else None
        found = await self._hooks.hooks(call.scope, head.uid if head else "")
        start = _position(found, op.page_token) if op.page_token else 0
        end = start + op.page_size if op.page_size else len(found)
        more = cursors.page_token(end, found[end - 1].config.id) if end < len(found) else ""
        return PushPage(configs=tuple(_shown(hook) for hook in found[start:end]), next_page_token=more)

    async def delete(self, call: Call, op: DeletePush) -> None:
        """Nothing is sent to it from now on. That it was not there is no error: deleting twice deletes once."""
        head = await self._head(call.scope, op.task_id)
        hook = await self._meant(call.scope, head, op.id, call.policy.of(head.origin))
        if hook is not None:
            await self._hooks.drop_hook(call.scope, head.uid, hook.config.id)

    # --- with a message

    async def admit(self, config: PushConfig) -> None:
        """Judge what came with a message, before anything of the message is decided."""
        await self._admit(config, INLINE)

    async def afford(self, scope: Scope) -> None:
        """Raises Busy when the caller has as many as one may have. Those on their way at the same time are let in."""
        most = self._most_each
        if most and await self._hooks.count_hooks(scope.owner, most) >= most:
            words = f"You have {most} webhooks already; delete one first, or wait until their tasks are deleted"
            raise Busy(words, retry_after=60, limit="limits.webhooks_per_caller", most=most)

    def new(self, call: Call, config: PushConfig | None, uid: str, id: str) -> tuple[Hook, ...]:
        """What is kept with a task that begins."""
        return () if config is None else (self._hook(call, config, uid, id, call.policy),)

    async def further(self, call: Call, config: PushConfig | None, head: Head) -> tuple[Hook, ...]:
        """What is kept with a further message to a task. Raises Busy when the task has too many."""
        if config is None:
            return ()
        hook = self._hook(call, config, head.uid, head.id, call.policy.of(head.origin))
        await self._room(hook, self._coming[head.uid] + 1)
        return (hook,)

    # --- parts

    def _able(self) -> tuple[Hooks, Screen]:
        if self._kept is None or self._screen is None:
            raise PushNotSupported
        return self._kept, self._screen

    @property
    def _hooks(self) -> Hooks:
        return self._able()[0]

    async def _head(self, scope: Scope, id: str) -> Head:
        self._able()
        head = await self._store.find(scope, id)
        if head is None:
            raise TaskNotFound(id)
        return head

    async def _admit(self, config: PushConfig, place: str) -> None:
        """`place` is where the configuration stood, with a dot behind it."""
        _, screen = self._able()
        try:
            judge(config)
            await screen.admit(config.url)
        except InvalidParams as error:
            # A screen names no field: it was asked about the address.
            found = [Violation(place + (each.field or "url"), each.description) for each in error.violations]
            raise InvalidParams(found) from None

    def _hook(self, call: Call, config: PushConfig, uid: str, id: str, policy: Policy) -> Hook:
        if policy.single_hook:
            name = id
        elif config.id:
            name = config.id
        else:
            name = id if policy.own_hook else self._ids.uid()
        kept = replace(config, tenant="", id=name, task_id=id, origin="")
        return Hook(uid=uid, scope=call.scope, config=kept, origin=call.origin)

    async def _room(self, hook: Hook, coming: int) -> None:
        """Raises Busy where a task would have too many with those that are coming, this one among them."""
        known = {each.config.id for each in await self._hooks.hooks(hook.scope, hook.uid)}
        if hook.config.id in known:
            return
        most = self._most
        if len(known) + coming > most:
            raise Busy(f"This task has {most} webhooks already; delete one first", limit="limits.webhooks", most=most)
        await self.afford(hook.scope)

    async def _meant(self, scope: Scope, head: Head, id: str, policy: Policy) -> Hook | None:
        if policy.single_hook:
            id = head.id
        if id:
            return await self._hooks.hook(scope, head.uid, id)
        if not policy.any_hook:
            return None
        found = await self._hooks.hooks(scope, head.uid)
        return next((hook for hook in found if hook.config.id == head.id), found[0] if found else None)


def _shown(hook: Hook) -> PushConfig:
    """As anybody may see it who may see the task: without its secrets."""
    config = hook.config
    scheme = (config.authentication or {}).get("scheme", "")
    return replace(
        config,
        tenant=hook.scope.tenant,
        token="",
        authentication={"scheme": scheme} if scheme else None,
        origin=hook.origin,
    )


def _position(hooks: Sequence[Hook], token: str) -> int:
    """Where a page begins: behind the last one of the page before, or in its place when it is gone."""
    shown, id = cursors.page_position(token)
    behind = (place for place, hook in enumerate(hooks, 1) if hook.config.id == id)
    return next(behind, max(0, shown - 1))
