"""Words that carry no meaning of their own: left out of the lexical vector. Negations stay in: a prohibition is a fact."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENGLISH = _words(
    """
    a about above after again against all am an and any are as at be because been before being below between both but by can
    could did do does doing down during each few for from further had has have having he her here hers herself him himself his
    how i if in into is it its itself just me more most my myself of off on once only or other our ours ourselves out over own
    same shall she should so some such than that the their theirs them themselves then there these they this those through to
    too under until up us very was we were what when where which while who whom why will with would you your yours yourself
    yourselves
    """
)

CONTRACTIONS = ("'s", "'m", "'re", "'ve", "'ll", "'d")
"""English endings that hang on a word: the word alone is looked at."""

RUSSIAN = _words(
    """
    а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее ей ему если есть
    еще же за здесь и из или им их к как какая какой ко когда кто ли лишь между меня мне может мой моя мы на над надо наш него
    нее ней них но ну о об однако он она они оно от очень по под после потом потому при про с сам свой себе себя со так также
    такой там тебя тем теперь то тогда того тоже той только том тот ту ты у уж уже хотя чего чем что чтобы чье чья эта эти это
    этого этой этом этот эту я
    """
)
