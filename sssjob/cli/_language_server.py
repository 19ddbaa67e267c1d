"""The language server: the protocol's side of ``sssjob.conversion.editing``. The command imports it when it is used,
for pygls is an extra.

Source: Language Server Protocol 3.17.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from pygls import uris
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from sssjob.conversion.editing import Page
from sssjob.findings import escape
from sssjob.limits import LIMITS
from sssjob.version import __version__

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.translators.lint_choice import Choice

_Handler = Callable[[Any, Any], Any]

#: What refuses, what breaks the job, what costs more, what only looks different.
_SEVERITY: Final = (types.DiagnosticSeverity.Error, types.DiagnosticSeverity.Warning,
                    types.DiagnosticSeverity.Information, types.DiagnosticSeverity.Hint)


class _Protocol(LanguageServerProtocol):
    """The protocol, which also answers a request whose parameters are none: an editor would wait for ever."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message as an object. Raises JsonRpcException where it is none, after the answer to it."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if isinstance(data.get("id"), (int, str)) and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise


class _Server(LanguageServer):
    """A server for scripts of one dialect, or of whichever each one is."""

    def __init__(self, source: str, site: Site | None, choice: Choice) -> None:
        super().__init__("sssjob", __version__, protocol_cls=_Protocol)
        self.source, self.site, self.choice = source, site, choice
        self._pages: dict[str, tuple[int | None, Page]] = {}

    def warm(self) -> None:
        """Load what the first answers need, so that they do not wait for it."""
        Page("#!/bin/sh\n#SBATCH -n 1\n", source="slurm").hover(1, 9)

    def page(self, uri: str) -> Page:
        """The script at an address as its editor shows it; one of each version is kept."""
        document = self.workspace.get_text_document(uri)
        cached = self._pages.get(uri)
        if cached is None or document.version is None or cached[0] != document.version:
            path = uris.to_fs_path(uri) or uri
            cached = self._pages[uri] = document.version, Page(
                self.text(uri)[:LIMITS.shell_bytes + 1], Path(path).name, self.source, self.site, self.choice)
        return cached[1]

    def text(self, uri: str) -> str:
        """The text of a script; empty where an editor asks of one that it has not opened, and that cannot be read."""
        try:
            return str(self.workspace.get_text_document(uri).source)
        except (OSError, UnicodeDecodeError):
            return ""

    def lines(self, uri: str) -> list[str]:
        """The lines of a script with their ends."""
        return self.text(uri).splitlines(True)

    def forget(self, uri: str) -> None:
        """A script that is shown no more."""
        self._pages.pop(uri, None)

    def text_range(self, uri: str, line: int, start: int, end: int) -> types.Range:
        """A piece of a line in the units that the editor counts in; those of the beginning are the same in all."""
        if not (line or start or end):
            return types.Range(types.Position(0, 0), types.Position(0, 0))
        return self.workspace.position_codec.range_to_client_units(self.lines(uri), types.Range(
            types.Position(line, start), types.Position(line, end)))


def server(source: str, site: Site | None, choice: Choice) -> LanguageServer:
    """The server of ``sssjob lsp``. source: a dialect, or ``auto``."""
    logging.getLogger("pygls").addHandler(logging.NullHandler())
    logging.getLogger("pygls").propagate = False        # what a broken client sends is no traceback for its user
    server = _Server(source, site, choice)
    for name, handler, options in _FEATURES:
        server.feature(name, options)(_guarded(name, handler))
    return server


def _guarded(name: str, handler: _Handler) -> _Handler:
    """A handler whose failures are reported in a sentence, without the lines of our own code that the protocol has a
    place for."""
    @wraps(handler)
    def guarded(server: _Server, params: Any) -> Any:
        """Handle a request; any fault is an answer of one line and not the end of the server."""
        try:
            return handler(server, params)
        except Exception as error:
            raise JsonRpcInternalError(f"{name}: {type(error).__name__}: {escape(str(error), 300)}") from None

    return guarded


# --- what editors ask ---------------------------------------------------------------------------------------------

def _initialized(server: _Server, params: types.InitializedParams) -> None:
    server.warm()


def _publish(server: _Server, params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
    """Send the findings of a script that was opened or has changed."""
    uri = params.text_document.uri
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, [
        types.Diagnostic(server.text_range(uri, mark.line, mark.start, mark.end), escape(mark.message, 1000),
                         _SEVERITY[min(mark.rank, 3)], mark.rule, source="sssjob")
        for mark in server.page(uri).marks()],
        server.workspace.get_text_document(uri).version))


def _closed(server: _Server, params: types.DidCloseTextDocumentParams) -> None:
    server.forget(params.text_document.uri)
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))


def _hover(server: _Server, params: types.HoverParams) -> types.Hover | None:
    uri = params.text_document.uri
    page = server.page(uri)
    note = page.hover(*_place(server, params)) if page.dialect is not None else None
    if note is None:
        return None
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, note.text),
                       server.text_range(uri, note.line, note.start, note.end))


def _completion(server: _Server, params: types.CompletionParams) -> types.CompletionList:
    uri, (line, character) = params.text_document.uri, _place(server, params)
    return types.CompletionList(is_incomplete=False, items=[
        types.CompletionItem(proposal.text.strip(), detail=proposal.detail, kind=types.CompletionItemKind.Property,
                             filter_text=proposal.text, text_edit=types.TextEdit(
                                 server.text_range(uri, line, character - proposal.taken, character), proposal.text))
        for proposal in server.page(uri).proposals(line, character)])


def _actions(server: _Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    """What can be done with a whole script; conversions are made when one is chosen."""
    uri = params.text_document.uri
    page = server.page(uri)
    actions = [types.CodeAction(f"Convert to {dialect.title}", types.CodeActionKind.Refactor,
                                data={"uri": uri, "target": dialect.name}) for dialect in page.targets()]
    mended = page.mended()
    if mended is not None:
        actions.insert(0, types.CodeAction("Mend what can be mended without a doubt",
                                           types.CodeActionKind.SourceFixAll, edit=_whole(server, uri, mended)))
    return actions


def _resolve(server: _Server, action: types.CodeAction) -> types.CodeAction:
    """The conversion that was chosen, as an edit; what is lost by it is shown as a message."""
    data = action.data if isinstance(action.data, dict) else {}
    uri, target = str(data.get("uri", "")), str(data.get("target", ""))
    page = server.page(uri)
    if action.edit is None and target in {dialect.name for dialect in page.targets()}:
        converted = page.converted(target)
        message = "\n".join(escape(str(f), 300) for f in converted.findings[:20])
        if converted.text is not None:
            action.edit = _whole(server, uri, converted.text)
        server.window_show_message(types.ShowMessageParams(
            types.MessageType.Info if converted.text is not None else types.MessageType.Error,
            message or "nothing is lost"))
    return action


def _place(server: _Server, params: types.HoverParams | types.CompletionParams) -> tuple[int, int]:
    """The line and character of a position, in characters of the text."""
    position = server.workspace.position_codec.position_from_client_units(
        server.lines(params.text_document.uri), params.position)
    return position.line, position.character


def _whole(server: _Server, uri: str, text: str) -> types.WorkspaceEdit:
    """The change of all of a script."""
    return types.WorkspaceEdit(changes={uri: [types.TextEdit(types.Range(
        types.Position(0, 0), types.Position(len(server.lines(uri)) + 1, 0)), text)]})


#: Name of a request or notification, what answers it, and the options that the editor is told.
_FEATURES: Final[tuple[tuple[str, _Handler, object], ...]] = (
    (types.INITIALIZED, _initialized, None),
    (types.TEXT_DOCUMENT_DID_OPEN, _publish, None), (types.TEXT_DOCUMENT_DID_CHANGE, _publish, None),
    (types.TEXT_DOCUMENT_DID_CLOSE, _closed, None), (types.TEXT_DOCUMENT_HOVER, _hover, None),
    (types.TEXT_DOCUMENT_COMPLETION, _completion, types.CompletionOptions(trigger_characters=["#", "-", " "])),
    (types.TEXT_DOCUMENT_CODE_ACTION, _actions, types.CodeActionOptions(
        [types.CodeActionKind.SourceFixAll, types.CodeActionKind.Refactor], resolve_provider=True)),
    (types.CODE_ACTION_RESOLVE, _resolve, None),
)
